import { type BaseModules, moduleIn } from './base-modules.js';
import type { ModuleId } from './module-ids.js';
import type { ModulePlace } from './targeted-modules.js';

/** Where a tensor of an adapter belongs. */
export interface AdapterTensorPlace extends ModulePlace {
  module: ModuleId;
  part: 'A' | 'B';
  /** Name of the adapter in the tensor's name, which only some files have; null: none. */
  adapterName: string | null;
}

/** Longest name of a tensor that is looked at. */
const MAX_NAME_LENGTH = 512;

/**
 * Takes apart the name of an adapter's tensor:
 *
 *   base_model.model. | model.layers | . | 0 | . | self_attn.q_proj | .lora_ | A | .default | .weight
 *                       layersName       layer     module                   part  adapterName
 *
 * The model's own prefix (`model.`, `transformer.`) is absent where the adapter was trained without a head. A string says
 * what is wrong instead: "is ..., which is not supported".
 */
export function placeOfTensor(name: string, base: BaseModules): AdapterTensorPlace | string {
  if (name.length > MAX_NAME_LENGTH)
    return `has a name of ${name.length} characters, more than ${MAX_NAME_LENGTH}`;
  const unsupported = UNSUPPORTED.find(([pattern]) => pattern.test(name));
  if (unsupported) return `is ${unsupported[1]}, which is not supported`;
  const match = /^(.*)\.lora_([AB])(?:\.([\w-]+))?\.weight$/s.exec(name);
  if (!match) return 'is neither lora_A nor lora_B of a module';
  const [, path, part, adapterName] = match as unknown as [string, string, 'A' | 'B', string | undefined];
  const own = path.startsWith('base_model.model.') ? path.slice('base_model.model.'.length) : path;
  const inLayer = /^((?:\w+\.)?(?:layers|h))\.(0|[1-9]\d{0,8})\.(.+)$/s.exec(own);
  const known = [...base.names.keys()].join(', ');
  const module = inLayer ? moduleIn(base, inLayer[1]!, inLayer[3]!) : undefined;
  if (!inLayer || module === undefined) {
    return `belongs to no module of the base model that can have an adapter; its layers (${base.layersName}) have ${known}`;
  }
  return {
    name: own,
    layersName: inLayer[1]!,
    layer: Number(inLayer[2]),
    module,
    part,
    adapterName: adapterName ?? null,
  };
}

/** Tensors that an adapter of another kind has. */
const UNSUPPORTED: readonly (readonly [RegExp, string])[] = [
  [/\.lora_embedding_[AB]\b/, 'an adapter of an embedding'],
  [/\blora_magnitude_vector\b/, 'the magnitude of DoRA'],
  [/\.lora_[AB](\.[^.]+)?\.bias$/, 'a bias of an adapter (lora_bias)'],
  [/\bmodules_to_save\b/, 'a module that was trained whole (modules_to_save)'],
  [/\btrainable_tokens_/, 'a trained embedding of tokens'],
  [/\blm_head\b/, 'of the output layer'],
  [/\b(embed_tokens|wte|wpe)\b/, 'of an embedding'],
  [/\.bias$/, 'a trained bias'],
];
