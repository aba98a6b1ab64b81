import type { NamedTensor } from '../../callbacks/types.js';
import type { Response } from '../../callbacks/unpack-responses.js';
import { tensorOf } from '../../tools/support/loop-harness.js';

/** Everything of a request's rows of logits, put together over its responses. */
export interface Returned {
  contextLogits: number[][];
  generationLogits: number[][];
  contextLogProbs: number[];
  contextTopTokens: number[];
  contextTopLogProbs: number[];
}

/** Rows of a tensor [..., rows, width]; none of a dummy. */
function rowsOf(tensor: NamedTensor): number[][] {
  const [rows, width] = tensor.shape.slice(-2) as [number, number];
  if (width === 1) return [];
  return Array.from({ length: rows }, (_, row) =>
    Array.from(tensor.data.slice(row * width, (row + 1) * width), Number),
  );
}

export function collectReturned(responses: readonly Response[]): Returned {
  const named = (name: string) => responses.flatMap(({ outputs }) => tensorOf(outputs, name) ?? []);
  const numbers = (name: string) => named(name).flatMap(({ data }) => Array.from(data as Float32Array));
  return {
    contextLogits: named('context_logits').flatMap(rowsOf),
    generationLogits: named('generation_logits').flatMap(rowsOf),
    contextLogProbs: numbers('context_log_probs'),
    contextTopTokens: numbers('context_top_token_ids'),
    contextTopLogProbs: numbers('context_top_log_probs'),
  };
}
