import { dirname } from 'node:path';
import { encoderArchitectures } from '../architectures/index.js';
import type { EncoderConfig, EncoderHead, HeadLayer, Pooling, ScoreHead } from '../encoder-config.js';
import type { ModelConfig } from '../model-config.js';
import { CheckpointError } from './checkpoint.js';
import { LIMITS } from './config-fields.js';
import { ACTIVATIONS } from './config-values.js';
import { MATRYOSHKA, TOKEN_SCORES } from './decoder-encoder.js';
import type { GgufHeader } from './gguf.js';
import { hasExperts } from './gguf-experts.js';
import type { GgufKeys } from './gguf-keys.js';
import type { RawTensor } from './raw-tensor.js';
import { readSentenceTransformers } from './sentence-transformers.js';

/** pooling_type as llama.cpp numbers it; RANK makes a score, and 0 leaves the rows of all tokens. */
const POOLINGS: ReadonlyMap<number, Pooling> = new Map([
  [1, 'mean'],
  [2, 'cls'],
  [3, 'last'],
]);
const RANK = 4;
/** Decoders of llama.cpp that do nothing but embed. */
const EMBEDS_ONLY: ReadonlySet<string> = new Set(['gemma-embedding']);
const SCORE = 'cls.output.weight';
/** Tokens whose rows of the output layer the converter keeps for a score. */
const JUDGES = ['yes', 'no'] as const;

/** GELU, or SiLU of nomic-embed without experts, where the file does not name another one, which it does for ModernBERT alone. */
export function encoderActivation(keys: GgufKeys, architecture: string): ModelConfig['activation'] {
  const name =
    keys.string('hidden_activation') ?? (architecture === 'ropebert' && !hasExperts(keys) ? 'silu' : 'gelu');
  const activation = ACTIVATIONS.get(name);
  if (!activation)
    throw keys.error('hidden_activation', `one of ${[...ACTIVATIONS.keys()].join(', ')}`, name);
  return activation;
}

/**
 * A GGUF's model, as an encoder where it is one: those of BERT's kind, and decoders whose file says how rows are pooled. A GGUF does not
 * say whether embeddings have length 1: they do, as with llama.cpp. Prompts and a limit of tokens come from sentence-transformers' files
 * next to it, if there are any.
 */
export function asGgufEncoder(header: GgufHeader, keys: GgufKeys, model: ModelConfig): ModelConfig {
  const { architecture, hiddenSize } = model;
  const tensors = new Map(header.tensors.map((tensor) => [tensor.name, tensor]));
  const name = header.metadata.string('general.architecture') ?? '';
  const isEncoder = encoderArchitectures.has(architecture);
  const type = keys.number('pooling_type');
  if (!isEncoder && !EMBEDS_ONLY.has(name) && !type) return model;
  const positions = architecture === 'bert' ? tensors.get('position_embd.weight') : undefined;
  const scores = type === RANK || (isEncoder && type === undefined && tensors.has(SCORE));
  const sentences = readSentenceTransformers(dirname(header.file), hiddenSize);
  const { prompts, defaultPrompt, maxTokens } = sentences;
  const head: EncoderHead = scores
    ? scoreHead(header, model, tensors)
    : {
        kind: 'embedding',
        pooling: poolingOf(keys, type),
        layers: denseLayers(keys, hiddenSize),
        normalize: true,
        matryoshka: MATRYOSHKA.has(architecture) ? 'any' : null,
        prompts,
        defaultPrompt,
      };
  const encoder: EncoderConfig = {
    bothWays: isEncoder || keys.bothWays,
    tokenTypes: tensors.get('token_types.weight')?.shape[0] ?? 1,
    ...(isEncoder && !tensors.has('token_types.weight') && { withoutTypes: true }),
    positionRows: positions?.shape[0] ?? 0,
    // The converter leaves out the rows that RoBERTa has for padding.
    firstPosition: 0,
    head,
  };
  const room = Math.min(model.maxPositions, positions?.shape[0] ?? model.maxPositions);
  return {
    ...model,
    ...(architecture === 'modernbert' && { normBias: tensors.has('output_norm.bias') }),
    tieWordEmbeddings: !isEncoder && (model.tieWordEmbeddings || head.kind === 'embedding'),
    maxPositions: Math.min(room, maxTokens ?? room),
    encoder,
  };
}

function poolingOf(keys: GgufKeys, type: number | undefined): Pooling {
  const pooling = type === undefined ? 'mean' : POOLINGS.get(type);
  if (pooling !== undefined) return pooling;
  throw keys.error('pooling_type', '1 (mean), 2 (first token), 3 (last token) or 4 (score)', type);
}

/** Dense modules, where the file was converted with them: EmbeddingGemma's, without biases. */
function denseLayers(keys: GgufKeys, hiddenSize: number): HeadLayer[] {
  let width = hiddenSize;
  return [2, 3].flatMap((number): HeadLayer[] => {
    if (keys.number(`dense_${number}_feat_out`) === undefined) return [];
    keys.integer(`dense_${number}_feat_in`, width, width);
    width = keys.integer(`dense_${number}_feat_out`, 1, LIMITS.width);
    return [{ tensors: [`${number}_Dense.linear`], width, biased: false, activation: 'none' }];
  });
}

/** The layers of a score: those of RoBERTa and ModernBERT, or rows of a decoder's output layer. */
function scoreHead(
  { file, metadata }: GgufHeader,
  { architecture, hiddenSize }: ModelConfig,
  tensors: ReadonlyMap<string, RawTensor>,
): ScoreHead {
  const output = { width: 1, activation: 'none' } as const;
  const rest = { kind: 'score', activation: 'sigmoid' } as const;
  if (encoderArchitectures.has(architecture) && !tensors.has('cls.weight')) {
    throw new CheckpointError(
      `${file}: cls.weight, the layer before the score, is missing: llama.cpp's converter leaves it out of BERT's rerankers; take the model's safetensors.`,
    );
  }
  const dense = { width: hiddenSize, biased: tensors.has('cls.bias') };
  if (architecture === 'bert') {
    // DistilBERT, which has no types of tokens, has another activation than RoBERTa.
    const activation = tensors.has('token_types.weight') ? 'tanh' : 'relu';
    const first: HeadLayer = { ...dense, tensors: ['classifier.dense'], activation };
    return {
      ...rest,
      pooling: 'cls',
      layers: [first, { ...output, tensors: ['classifier.out_proj'], biased: true }],
    };
  }
  if (architecture === 'modernbert') {
    const norm = { tensor: 'head.norm', biased: tensors.has('cls.norm.bias') };
    const first: HeadLayer = { ...dense, tensors: ['head.dense'], activation: 'gelu', norm };
    // GGUF has no key for its pooling: the mean, as llama.cpp has it.
    return {
      ...rest,
      pooling: 'mean',
      layers: [first, { ...output, tensors: ['classifier'], biased: true }],
    };
  }
  const own = { ...output, biased: false };
  if (tensors.get(SCORE)?.shape[0] !== JUDGES.length)
    return { ...rest, pooling: 'last', layers: [{ ...own, tensors: ['score'] }] };
  const vocabulary = metadata.strings('tokenizer.ggml.tokens') ?? [];
  const [yes, no] = JUDGES.map((text) => vocabulary.indexOf(text)) as [number, number];
  if (yes < 0 || no < 0)
    throw new CheckpointError(
      `${file}: ${SCORE} has rows for the tokens yes and no, which the tokenizer has not.`,
    );
  const layers = [{ ...own, tensors: TOKEN_SCORES, width: JUDGES.length }];
  return { ...rest, pooling: 'last', layers, tokens: [yes, no] };
}

/** Names of the rows of a file's tensor that makes a score by tokens; null: it is another one. */
export function tokenRows(name: string, { encoder }: ModelConfig): string[] | null {
  const head = encoder?.head;
  if (name !== SCORE || head?.kind !== 'score' || head.tokens === undefined) return null;
  return TOKEN_SCORES.map((row) => `${row}.weight`);
}
