import { ModulePattern, type StepBudget } from '../../adapters/module-pattern.js';
import { CheckpointError } from '../checkpoint.js';
import { ConfigFields } from '../config-fields.js';
import { isObject } from '../file-reading.js';
import { type RawTensor, refuseShape } from '../raw-tensor.js';
import { e4m3Matrix } from './fp8.js';
import { isInOrder } from './integer-words.js';
import { type ModuleTensors, ofType, partOf, sizesOf } from './module-tensors.js';
import type { QuantizationMethod } from './quantization-method.js';
import { quantizedMatrix } from './quantized-matrix.js';
import type { QuantizedSource, Zeros } from './quantized-source.js';
import { type ScaleBlocks, scalesOf } from './scale-blocks.js';
import { readWeightScheme, schemeText, type WeightScheme } from './weight-scheme.js';

/** Formats whose tensors are read. In mixed-precision each group has its own. */
const FORMATS = [
  'int-quantized',
  'pack-quantized',
  'float-quantized',
  'naive-quantized',
  'nvfp4-pack-quantized',
  'mxfp4-pack-quantized',
  'mxfp8-quantized',
  'mixed-precision',
];
const MAX_GROUPS = 64;

/**
 * compressed-tensors, as llm-compressor and vLLM's tools write it: groups of modules, each with a scheme. The
 * kind of a module's tensors shows whether it is quantised, so that `ignore` has nothing to add. The
 * library's own `dequantize` is the reference.
 */
export function compressedTensorsMethod(config: ConfigFields): QuantizationMethod {
  checkFormat(config, 'format');
  refuseOthers(config);
  const groups = config.raw('config_groups');
  if (!isObject(groups)) throw config.error('config_groups', 'an object of groups');
  const entries = Object.entries(groups);
  if (entries.length > MAX_GROUPS) {
    throw new CheckpointError(
      `${config.where}: config_groups has ${entries.length} groups, more than ${MAX_GROUPS}.`,
    );
  }
  const targets = new GroupTargets<WeightScheme>(`${config.where}: config_groups`);
  const texts = new Set<string>();
  for (const [name, group] of entries) {
    if (!isObject(group))
      throw new CheckpointError(`${config.where}: config_groups: ${name} should be an object.`);
    const fields = new ConfigFields(`${config.where}: config_groups: ${name}`, group);
    if (fields.raw('weights') === undefined) continue;
    checkFormat(fields, 'format');
    const scheme = readWeightScheme(fields);
    texts.add(schemeText(scheme));
    targets.add(fields, scheme);
  }
  return {
    label: `compressed-tensors (${[...texts].join('; ')})`,
    codes: ['weight_packed', 'weight'],
    needed: ['weight_scale', 'weight_zero_point', 'weight_shape', 'weight_g_idx', 'weight_global_scale'],
    unread: ['input_scale', 'input_zero_point', 'input_global_scale', 'output_scale', 'output_zero_point'],
    matrix: (module): RawTensor => {
      const scheme = targets.of(module.name);
      if (scheme !== undefined) return compressedMatrix(module, scheme);
      const codes = module.first(['weight_packed', 'weight'])!;
      throw new CheckpointError(
        `${codes.file}: tensor ${codes.name} is quantised, but no group of config_groups has weights for ${module.name}.`,
      );
    },
  };
}

function checkFormat(config: ConfigFields, key: string): void {
  const format = config.string(key);
  if (format !== undefined && !FORMATS.includes(format))
    throw config.error(key, `one of ${FORMATS.join(', ')}`);
}

/** Refuses changes to weights or activations outside the groups. */
function refuseOthers(config: ConfigFields): void {
  const sparsity = config.raw('sparsity_config');
  const sparse = isObject(sparsity) ? sparsity.format : undefined;
  if (sparse !== undefined && sparse !== 'dense')
    throw config.error('sparsity_config', 'of the format "dense"');
  const transforms = config.raw('transform_config');
  const some = isObject(transforms) ? transforms.config_groups : undefined;
  if (isObject(some) && Object.keys(some).length > 0)
    throw config.error('transform_config', 'without config_groups');
}

/** Steps that all patterns of a model take at most. */
const MAX_STEPS = 20_000_000;
const MAX_TARGETS = 4096;
/** Begins a target that is a regular expression. */
const PATTERN = 're:';

/**
 * What groups of compressed-tensors say of modules. A target is a module's name, a regular expression after "re:" that matches at its beginning, or
 * the name of a class; all modules with matrices are of the class Linear here. As in the library, names and patterns count before classes.
 */
class GroupTargets<T> {
  readonly #where: string;
  readonly #names = new Map<string, T>();
  readonly #patterns: { pattern: ModulePattern; value: T }[] = [];
  readonly #budget: StepBudget = { left: MAX_STEPS };
  #ofClass: T | undefined;
  #count = 0;

  /** @param where names the file and the setting, for errors */
  constructor(where: string) {
    this.#where = where;
  }

  /** Adds a group with its targets. @throws CheckpointError */
  add(group: ConfigFields, value: T): void {
    const targets = group.raw('targets');
    if (!Array.isArray(targets) || !targets.every((target) => typeof target === 'string'))
      throw group.error('targets', 'a list of names');
    this.#count += targets.length;
    if (this.#count > MAX_TARGETS)
      throw group.error('targets', `at most ${MAX_TARGETS} names over all groups`);
    for (const target of targets as string[]) {
      if (target === 'Linear') this.#ofClass ??= value;
      else if (target.startsWith(PATTERN)) this.#addPattern(target.slice(PATTERN.length), value);
      else if (!this.#names.has(target)) this.#names.set(target, value);
    }
  }

  /** What the groups say of a module; undefined where none has it. @throws CheckpointError where patterns take too many steps */
  of(module: string): T | undefined {
    return (
      this.#names.get(module) ??
      this.#patterns.find(({ pattern }) => pattern.matchesAll(module, this.#budget))?.value ??
      this.#ofClass
    );
  }

  #addPattern(source: string, value: T): void {
    const pattern = new ModulePattern(this.#where, `(?:${source}).*`, source);
    this.#patterns.push({ pattern, value });
  }
}

type Sizes = [rows: number, columns: number];

/** The matrix of a module that compressed-tensors has quantised. @throws CheckpointError */
function compressedMatrix(module: ModuleTensors, scheme: WeightScheme): RawTensor {
  const packed = module.get('weight_packed');
  if (packed !== undefined) {
    return scheme.type === 'float' ? fp4Matrix(packed, module, scheme) : packedMatrix(packed, module, scheme);
  }
  const weight = module.get('weight')!;
  if (scheme.type === 'float') {
    const [rows, columns] = sizesOf(weight);
    return e4m3Matrix(module, [blocksOf(scheme, rows, columns)]);
  }
  const sizes = sizesOf(ofType(weight, ['I8']));
  return integerMatrix(weight, module, scheme, sizes, { codes: 'i8', zero: 0 });
}

/** Whole numbers in words of 32 bits, less the half of their range. */
function packedMatrix(codes: RawTensor, module: ModuleTensors, scheme: WeightScheme): RawTensor {
  const { bits } = scheme;
  const [rows, words] = sizesOf(ofType(codes, ['I32']));
  // weight_shape would tell where the last word of a row is not full; no network here has such a matrix.
  const columns = (words * 32) / bits;
  const kind = bits === 4 ? ({ codes: 'u4', zero: 8 } as const) : ({ codes: 'u8', zero: 128 } as const);
  return integerMatrix(codes, module, scheme, [rows, columns], kind);
}

function integerMatrix(
  codes: RawTensor,
  module: ModuleTensors,
  scheme: WeightScheme,
  sizes: Sizes,
  kind: Pick<QuantizedSource, 'codes' | 'zero'>,
): RawTensor {
  const blocks = blocksOf(scheme, ...sizes);
  const scales = scalesOf(module.need('weight_scale', ['F32', 'F16', 'BF16']), sizes, [blocks]);
  const zeros = scheme.isSymmetric ? undefined : zerosOf(module, scheme, sizes, kind.codes);
  const order = module.get('weight_g_idx');
  const groups = order && partOf(ofType(order, ['I32']), [sizes[1]]);
  const isShuffled = order !== undefined && !isInOrder(order, blocks.columnsEach);
  return quantizedMatrix(codes, module, sizes, {
    ...kind,
    order: 'rows',
    ...scales,
    ...(zeros && { zeros }),
    ...(isShuffled && groups && { groups }),
  });
}

function zerosOf(
  module: ModuleTensors,
  scheme: WeightScheme,
  [rows, columns]: Sizes,
  codes: QuantizedSource['codes'],
): Zeros {
  const tensor = module.need('weight_zero_point', ['I32', 'I8']);
  const { rowsEach, columnsEach } = blocksOf(scheme, rows, columns);
  const [down, across] = [Math.ceil(rows / rowsEach), Math.ceil(columns / columnsEach)];
  if (tensor.type === 'I32' && codes !== 'i8') {
    const words = Math.ceil((down * scheme.bits) / 32);
    return { ...partOf(tensor, [words, across]), order: 'packedRows', add: 0 };
  }
  const shape = tensor.shape.length < 2 && across === 1 ? tensor.shape : [down, across];
  if (tensor.byteLength !== down * across) refuseShape(tensor, [down, across]);
  return { ...partOf(ofType(tensor, ['I8']), shape), order: 'bytes', add: 0 };
}

/** FP4: NVFP4 has scales in FP8 for 16 columns, which one number divides; MXFP4 powers of 2 for 32. */
function fp4Matrix(codes: RawTensor, module: ModuleTensors, scheme: WeightScheme): RawTensor {
  const [rows, bytes] = sizesOf(ofType(codes, ['U8']));
  const columns = 2 * bytes;
  const blocks = blocksOf(scheme, rows, columns);
  const layout = { codes: 'e2m1', order: 'rows', zero: 0 } as const;
  if (scheme.strategy !== 'tensor_group') {
    const scale = module.need('weight_scale', ['U8', 'F8_E8M0']);
    return quantizedMatrix(codes, module, [rows, columns], {
      ...layout,
      ...scalesOf(scale, [rows, columns], [blocks]),
    });
  }
  const scale = module.need('weight_scale', ['F8_E4M3']);
  const divisor = module.need('weight_global_scale', ['F32']);
  if (divisor.byteLength !== 4) refuseShape(divisor, [1]);
  return quantizedMatrix(codes, module, [rows, columns], {
    ...layout,
    ...blocks,
    scales: {
      ...partOf(scale, [rows, Math.ceil(columns / blocks.columnsEach)]),
      type: 'F8_E4M3',
      byColumns: false,
    },
    divisor: partOf(divisor, divisor.shape),
  });
}

function blocksOf({ strategy, groupSize, block }: WeightScheme, rows: number, columns: number): ScaleBlocks {
  if (strategy === 'tensor') return { rowsEach: rows, columnsEach: columns };
  if (strategy === 'channel') return { rowsEach: 1, columnsEach: columns };
  if (strategy === 'block') return { rowsEach: block![0], columnsEach: block![1] };
  return { rowsEach: 1, columnsEach: groupSize! };
}
