import type { GptManagerOptions, InstructionSet } from '../../../callbacks/gpt-manager-options.js';
import type { InferenceRequest } from '../../../callbacks/types.js';
import type { EngineInfo } from '../../../callbacks/worker-messages.js';
import type { KvDtype } from '../../../kvcache/cache-shape.js';
import { compiled } from '../compiled.js';
import type { AgreementPrompt } from './agreement.js';

/** Sequences that generate together. */
export const SEQUENCES = 64;

interface Manager {
  readonly ready: Promise<EngineInfo>;
  shutdown(): Promise<unknown>;
}
type ManagerClass = new (options: GptManagerOptions) => Manager;

export interface AnswerOptions {
  enginePath: string;
  isa: InstructionSet;
  kvDtype: KvDtype;
  threads: number;
}

/** The greedy tokens of an engine after each prompt, of which it has all at once. @throws where a request fails. */
export async function answersOf(
  prompts: readonly AgreementPrompt[],
  { enginePath, isa, kvDtype, threads }: AnswerOptions,
): Promise<number[][]> {
  const { GptManager } = await compiled<{ GptManager: ManagerClass }>('src/index.js');
  const waiting = prompts.map(requestOf);
  const answers: number[][] = [];
  const longest = Math.max(...prompts.map(({ promptIds, tokens }) => promptIds.length + tokens.length));
  const maxSeqLen = 32 * Math.ceil(longest / 32);
  let resolve = () => {};
  let reject = (_error: Error) => {};
  const finished = new Promise<void>((onResult, onError) => {
    [resolve, reject] = [onResult, onError];
  });
  let running = prompts.length;
  const manager = new GptManager({
    enginePath,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'GUARANTEED_NO_EVICT',
    getInferenceRequests: (max) => waiting.splice(0, max < 0 ? waiting.length : max),
    sendResponse: (requestId, outputs, final, error) => {
      if (error !== '') reject(new Error(`Request ${requestId}: ${error}`));
      if (!final) return;
      const i = Number(requestId) - 1;
      const dataOf = (name: string) => outputs.find((output) => output.name === name)!.data as Int32Array;
      // Both count the prompt; after the answer stands padding.
      answers[i] = [
        ...dataOf('output_ids').slice(prompts[i]!.promptIds.length, dataOf('sequence_length')[0]),
      ];
      if (--running === 0) resolve();
    },
    onError: (error) => reject(error),
    optionalParams: {
      ...{ threads, instructionSet: isa, kvDtype, maxSeqLen },
      enableChunkedContext: true,
      maxNumSequences: SEQUENCES,
      kvCacheConfig: { maxTokens: SEQUENCES * maxSeqLen },
    },
  });
  try {
    await Promise.all([manager.ready, finished]);
  } finally {
    await manager.shutdown();
  }
  return answers;
}

function requestOf({ promptIds, tokens }: AgreementPrompt, i: number): InferenceRequest {
  return {
    requestId: BigInt(i + 1),
    inputs: {
      input_ids: { shape: [1, promptIds.length], data: Int32Array.from(promptIds) },
      request_output_len: { shape: [1, 1], data: Int32Array.of(tokens.length) },
      runtime_top_k: { shape: [1], data: Int32Array.of(1) },
    },
  };
}
