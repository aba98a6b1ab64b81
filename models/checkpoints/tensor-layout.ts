import type { ModelConfig } from '../model-config.js';
import { CheckpointError, type TensorLocation } from './checkpoint.js';
import { expertSlices, routerName } from './expert-tensors.js';
import type { RawTensor } from './raw-tensor.js';
import { refuseUnread } from './unread-tensors.js';

/** A tensor under the name that the network asks for, with the steps of its conversion beside rounding. */
export type NamedTensor = RawTensor & Pick<TensorLocation, 'interleavedHeads' | 'transposed' | 'addend'>;

/** Prefix of the tensors of a model with a head on it, which is left out: `bert.encoder.layer.0...` */
const ENCODER_PREFIX = /^(bert|roberta)\./;
const GPT2_PREFIX = /^transformer\./;
/** Matrices of GPT-2's layers, which its authors call Conv1D and store as [in, out]. */
const GPT2_TURNED = /\.(c_attn|c_proj|c_fc)\.weight$/;
/** Weights of Gemma's norms, which multiply by 1 + weight. */
const GEMMA_NORM = /norm\.weight$/;

/** What transformers 5 calls tensors that have matrices of all experts of a layer, if it is told to write them as they are in memory. */
const STACKED = /^model\.layers\.(0|[1-9]\d*)\.mlp\.(experts\.(gate_up_proj|down_proj)|gate\.weight)$/;

/** Tensors of safetensors files under the network's names. GGUF files hold them converted already. */
export function namedTensors(tensors: readonly RawTensor[], config: ModelConfig): Map<string, NamedTensor> {
  if (config.experts !== undefined) return withExperts(tensors, config);
  const { architecture, encoder } = config;
  const isGpt2 = architecture === 'gpt2';
  const isGemma = architecture.startsWith('gemma');
  const prefix = encoder ? ENCODER_PREFIX : isGpt2 ? GPT2_PREFIX : null;
  return new Map(
    tensors.map((tensor): [string, NamedTensor] => {
      const name = prefix === null ? tensor.name : tensor.name.replace(prefix, '');
      if (isGpt2 && GPT2_TURNED.test(name)) return [name, { ...tensor, transposed: true }];
      if (isGemma && GEMMA_NORM.test(name)) return [name, { ...tensor, addend: 1 }];
      return [name, tensor];
    }),
  );
}

function withExperts(tensors: readonly RawTensor[], config: ModelConfig): Map<string, NamedTensor> {
  const named = new Map<string, NamedTensor>();
  for (const tensor of tensors) {
    for (const [name, one] of expertsOf(tensor, config)) {
      if (named.has(name)) throw new CheckpointError(`${tensor.file}: tensor ${name} is there twice.`);
      named.set(name, one);
    }
  }
  return named;
}

function expertsOf(tensor: RawTensor, config: ModelConfig): [string, NamedTensor][] {
  const [, layer, part, stack] = STACKED.exec(tensor.name) ?? [];
  if (layer === undefined || Number(layer) >= config.numLayers) return [[tensor.name, tensor]];
  if (part === 'gate.weight') return [[routerName(config.architecture, layer), tensor]];
  return expertSlices(tensor, config, layer, stack === 'down_proj' ? ['down'] : ['gate', 'up']);
}

/** Checks that all tensors of a decoder's layers in safetensors are read; `tensors` has the network's names. */
export function checkLayersRead(
  tensors: ReadonlyMap<string, NamedTensor>,
  config: ModelConfig,
  read: ReadonlyMap<string, unknown>,
): void {
  for (const [own, { file, name }] of tensors) {
    const [, layer, part] = /^(?:model\.layers|h)\.(\d+)\.(.*)$/.exec(own) ?? [];
    if (part !== undefined && !read.has(own))
      refuseUnread({ file, name, layer: Number(layer), part }, config);
  }
}
