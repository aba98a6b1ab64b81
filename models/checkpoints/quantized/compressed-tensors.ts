import { CheckpointError } from '../checkpoint.js';
import { ConfigFields } from '../config-fields.js';
import { isObject } from '../file-reading.js';
import type { RawTensor } from '../raw-tensor.js';
import { compressedMatrix } from './compressed-matrix.js';
import { GroupTargets } from './group-targets.js';
import type { QuantizationMethod } from './quantization-method.js';
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
 * compressed-tensors, as llm-compressor and vLLM's tools write it: groups of modules, each with a scheme. What a module's tensors are tells
 * whether it is quantised, so that `ignore` has nothing to add. The library's own `dequantize` is the reference.
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

/** What changes weights or activations beside the groups. */
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
