import type { LogitsPostProcessor } from '../../callbacks/logits-post-processor.js';
import { encodeWordList } from '../../callbacks/stop-words.js';
import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import { PostProcessors } from '../../engine/decoding/post-processors.js';
import type { ModelConfig } from '../../models/model-config.js';
import { text } from '../../tools/support/loop-harness.js';
import { type Arrival, randomNumbers, randomScenario } from './scenario.js';

const dampen: LogitsPostProcessor = (_, logits, [tokens]) => {
  for (const token of tokens!.subarray(-8)) if (token < logits.length) logits[token]! -= 1.5;
};
/** The post-processors that requests of `everything` name. */
export const postProcessors = new PostProcessors(new Map(Object.entries({ dampen })));

const one = (value: number): Tensor => ({ shape: [1], data: Int32Array.of(value) });
const row = (values: ArrayLike<number>): Tensor => ({
  shape: [1, values.length],
  data: Int32Array.from(values),
});

export interface Crowd {
  requests: number;
  /** True: some requests name the logits post-processor `dampen`. */
  processes: boolean;
}

/**
 * Every parameter that a request can have in addition to those of randomScenario, by chance and in any mix.
 */
export function everything(
  { vocabSize, hiddenSize }: ModelConfig,
  { requests, processes }: Crowd,
): Arrival[] {
  const limits = { requests, maxPrompt: 60, maxNew: 70, arrivalSpan: 40, seed: 5 };
  const random = randomNumbers(77);
  const below = (end: number) => Math.floor(random() * end);
  const chance = (probability: number) => random() < probability;
  const tokens = (count: number) => Array.from({ length: count }, () => 3 + below(vocabSize - 3));
  const tables = [0, 1].map(() => Float32Array.from({ length: 3 * hiddenSize }, () => random() - 0.5));
  return randomScenario({ vocabSize, sharedPrompts: true, returnsLogits: true, ...limits }).map((arrival) => {
    const { request } = arrival;
    const prompt = Int32Array.from(request.inputs.input_ids!.data as Int32Array);
    const own: Record<string, Tensor> = {};
    if (chance(0.4)) {
      for (const place of [0, 1, prompt.length >> 1]) prompt[place % prompt.length] = vocabSize + below(3);
      own.prompt_embedding_table = { shape: [3, hiddenSize], data: tables[below(2)]! };
    }
    if (chance(0.3)) {
      const first = below(20);
      own.position_ids = row(prompt.map((_, i) => first + i + (i > 20 ? 5 : 0)));
    }
    if (chance(0.4)) own.top_log_probs = one([1, 5, 64, vocabSize][below(4)]!);
    if (chance(0.2)) own.top_context_log_probs = one([3, vocabSize][below(2)]!);
    if (chance(0.3)) own.no_repeat_ngram_size = one(2 + below(3));
    if (chance(0.3)) own.bad_words_list = encodeWordList([tokens(1), tokens(1), tokens(2), tokens(3)]);
    if (chance(0.2)) {
      const data = Float32Array.from({ length: vocabSize }, () => random() - 0.5);
      own.embedding_bias = { shape: [1, vocabSize], data };
    }
    if (chance(0.3)) {
      own.logit_bias_tokens = row(tokens(3));
      own.logit_bias = { shape: [1, 3], data: Float32Array.of(2, -3, -Infinity) };
    }
    if (processes && chance(0.2)) own.logits_post_processor_name = text('dampen');
    const inputs = { ...request.inputs, ...own, input_ids: row(prompt) };
    return { ...arrival, request: { ...request, inputs } satisfies InferenceRequest };
  });
}
