import { encodeWordList } from '../../callbacks/stop-words.js';
import type { InferenceRequest } from '../../callbacks/types.js';
import { bool, f32, i32, type LoopHarness, u64 } from '../../tools/support/loop-harness.js';

/** A request of a crowd. */
export interface CrowdArrival {
  request: InferenceRequest;
  arrivalIteration: number;
  /** Iteration in which it is cancelled; null = never. */
  cancelIteration: number | null;
}

/** A request of a crowd, as property tests draw it. */
export interface CrowdShape {
  samples: boolean;
  penalty: boolean;
  /** 0 none, 1 of the drawn tokens, 2 of the most probable three too. */
  logProbs: number;
  endId: number;
  minLength: number;
  stopWord: number[] | null;
}

/** The tensors of such a request; `index` is its seed. */
export function crowdInputs(index: number, shape: CrowdShape): InferenceRequest['inputs'] {
  return {
    random_seed: u64(BigInt(index * 7919)),
    end_id: i32(shape.endId),
    min_length: i32(shape.minLength),
    return_log_probs: bool(shape.logProbs > 0),
    top_log_probs: i32(shape.logProbs > 1 ? 3 : 0),
    ...(shape.samples ? { temperature: f32(0.7), runtime_top_p: f32(0.9) } : {}),
    ...(shape.penalty ? { repetition_penalty: f32(1.1) } : {}),
    ...(shape.stopWord ? { stop_words_list: encodeWordList([shape.stopWord]) } : {}),
  };
}

/** Lets the requests arrive and be cancelled on time; the last of either happens in `lastArrival` at the latest. */
export function runCrowd(
  harness: LoopHarness,
  crowd: readonly CrowdArrival[],
  lastArrival: number,
): LoopHarness {
  for (let iteration = 0; iteration < 20_000; iteration++) {
    for (const { request, arrivalIteration, cancelIteration } of crowd) {
      if (arrivalIteration === iteration) harness.waiting.push(request);
      if (cancelIteration === iteration) harness.stops.add(request.requestId);
    }
    const wasBusy = harness.loop.iterate();
    if (!wasBusy && iteration > lastArrival && harness.waiting.length === 0) return harness;
  }
  throw new Error('The crowd never came to an end.');
}
