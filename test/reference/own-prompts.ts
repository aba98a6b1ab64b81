import type { InferenceRequest, Tensor } from '../../callbacks/types.js';
import type { TinyPrompt } from '../../tools/support/goldens.js';

/** A prompt of test/goldens/prompt-inputs.json: with embeddings or positions of its own. */
export interface OwnPrompt extends Omit<TinyPrompt, 'ropeFinalLength'> {
  name: string;
  /** Embeddings of the ids from the vocabulary's size on. */
  table?: number[][];
  positionIds?: number[];
}

/** The prompt with its context logits. */
export function requestOf({ promptIds, table, positionIds, tokens }: OwnPrompt): InferenceRequest {
  const ints = (values: number[]): Tensor => ({ shape: [1, values.length], data: Int32Array.from(values) });
  const inputs: Record<string, Tensor> = {
    input_ids: ints(promptIds),
    request_output_len: { shape: [1], data: Int32Array.of(tokens.length) },
    random_seed: { shape: [1], data: BigUint64Array.of(0n) },
    return_context_logits: { shape: [1], data: Uint8Array.of(1) },
  };
  if (table) {
    const data = Float32Array.from(table.flat());
    inputs.prompt_embedding_table = { shape: [table.length, table[0]!.length], data };
  }
  if (positionIds) inputs.position_ids = ints(positionIds);
  return { requestId: 1n, inputs };
}
