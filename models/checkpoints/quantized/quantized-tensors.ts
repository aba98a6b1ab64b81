import { CheckpointError } from '../checkpoint.js';
import type { RawTensor } from '../raw-tensor.js';
import { ModuleTensors } from './module-tensors.js';
import type { QuantizationMethod } from './quantization-method.js';

/** Types of plain numbers, which a module that is not quantised has under the name of codes. */
const PLAIN: ReadonlySet<string> = new Set(['F32', 'F16', 'BF16', 'F64']);
/** Scales of keys, values and scores, for a KV cache in FP8. */
const OF_CACHE = /\.(?:(?:[qkv]|kv|prob)_scale|output_scale)$/;

/**
 * The tensors of a quantised model as if it were none: a matrix for each module that has codes, and all others as they are.
 *
 * @throws CheckpointError for a module whose tensors do not fit together, and where none is quantised
 */
export function quantizedTensors(tensors: readonly RawTensor[], method: QuantizationMethod): RawTensor[] {
  const { codes, needed, unread, separator = '.' } = method;
  const known = new Set([...codes, ...needed, ...unread]);
  const modules = new Map<string, ModuleTensors>();
  const plain: RawTensor[] = [];
  for (const tensor of tensors) {
    const [module, part] = method.split?.(tensor.name) ?? splitName(tensor.name, separator);
    if (!known.has(part)) {
      if (!OF_CACHE.test(tensor.name)) plain.push(tensor);
    } else if (codes.includes(part) && PLAIN.has(tensor.type)) {
      plain.push(tensor);
    } else {
      const parts = modules.get(module) ?? new ModuleTensors(module, separator);
      modules.set(module, parts);
      parts.add(part, tensor);
    }
  }
  const matrices: RawTensor[] = [];
  for (const module of modules.values()) {
    if (module.first(codes) !== undefined) matrices.push(method.matrix(module));
    else refuseLeftOver(module, needed, codes);
  }
  if (matrices.length === 0 && tensors.length > 0) {
    throw new CheckpointError(
      `${tensors[0]!.file}: config.json says that weights are quantised as ${method.label}, but no tensor is.`,
    );
  }
  return [...plain, ...matrices];
}

function splitName(name: string, separator: string): [module: string, part: string] {
  const at = name.lastIndexOf(separator);
  return at === -1 ? ['', name] : [name.slice(0, at), name.slice(at + separator.length)];
}

function refuseLeftOver(module: ModuleTensors, needed: readonly string[], codes: readonly string[]): void {
  const tensor = module.first(needed);
  if (tensor === undefined) return;
  throw new CheckpointError(
    `${tensor.file}: tensor ${tensor.name} belongs to quantised weights that are not there (${codes.join(' or ')}).`,
  );
}
