import { type EncoderInfo, type EncoderSequence, givesTokens } from '../callbacks/encoder-messages.js';
import { type MissingRanks, type RanksOptions, whyHeld } from '../callbacks/ranks-options.js';
import type { EncoderWorkerData } from '../engine/encoder/encoder-worker.js';
import { encoderWorkerScript } from '../engine/encoder/worker-script.js';
import type { OpenGroup } from './batch/batch-host-options.js';
import {
  type ComputeOptions,
  type ItemsDuties,
  ItemsHost,
  type ItemsHostOptions,
} from './batch/items-host.js';
import { launchGroup, leadJoined } from './ranks/lead-group.js';

export interface EncoderHostOptions
  extends Omit<EncoderWorkerData, 'encoderModule' | 'seat'>,
    ItemsHostOptions {
  encoderModule?: string | URL | undefined;
  /** Its place where the other ranks of the encoder are started elsewhere: that of rank 0. */
  ranks?: RanksOptions | undefined;
  /** See OptionalParams.rankTimeoutMs. */
  rankTimeoutMs?: number | undefined;
  /** Called after each batch. */
  onBatch?: (batch: EncoderBatch) => void;
}

/** Size of a batch and duration of its forward. */
export interface EncoderBatch {
  sequences: number;
  tokens: number;
  forwardMs: number;
}

/** An encoder in a worker of its own. */
export class EncoderHost extends ItemsHost<EncoderSequence, EncoderInfo> {
  constructor(options: EncoderHostOptions) {
    super(options, dutiesOf(options));
  }

  /** Computes the rows of sequences, or what they ask for of their tokens; see ItemsHost.compute. */
  encode(sequences: readonly EncoderSequence[], options?: ComputeOptions): Promise<Float32Array[]> {
    return this.compute(sequences, options);
  }
}

function dutiesOf(options: EncoderHostOptions): ItemsDuties<EncoderSequence, EncoderInfo> {
  const { enginePath, params, encoderModule = null, ranks } = options;
  const data: EncoderWorkerData = {
    enginePath,
    params,
    encoderModule: encoderModule && String(encoderModule),
    seat: null,
  };
  return {
    subject: 'The encoder',
    script: encoderWorkerScript(),
    data: () => data,
    openGroup: (host) =>
      groupOpener(options, (missing) => {
        host.hold(whyHeld(missing));
        host.tell('ranks.onMissing', () => ranks?.onMissing?.(missing));
      }),
    sizeOf: ({ tokenIds }) => tokenIds.length,
    limitsOf: ({ limits }) => limits,
    whyInvalid,
    onBatch: (sequences, tokens, forwardMs) => options.onBatch?.({ sequences, tokens, forwardMs }),
  };
}

/** How the ranks of the encoder are opened, with rank 0 in its worker. */
function groupOpener(
  { enginePath, params, ranks, rankTimeoutMs }: EncoderHostOptions,
  onMissing: (missing: MissingRanks) => void,
): OpenGroup {
  const { tensorParallelSize, pipelineParallelSize } = params;
  const group = { enginePath, tensorParallelSize, pipelineParallelSize, rankTimeoutMs };
  let isBack = false;
  return (events, open) => {
    if (ranks === undefined) return launchGroup(group, events, (seat, ofWorker) => open({ seat }, ofWorker));
    const options = { ...group, ranks, isBack };
    isBack = true;
    const more = { onGroupMessage: () => {}, onMissing };
    return leadJoined(options, { ...events, ...more }, (seat, ofWorker) => open({ seat }, ofWorker));
  };
}

/** Why a sequence would make the native executor refuse its whole batch; null: it is valid. */
function whyInvalid(
  sequences: readonly EncoderSequence[],
  { limits, vocabSize, tokenTypes, head }: EncoderInfo,
): string | null {
  for (const [i, sequence] of sequences.entries()) {
    const { tokenIds, tokenTypes: types, output } = sequence;
    const { length } = tokenIds;
    if (length < 1 || length > limits.maxSeqLen) {
      return `Sequence ${i} has ${length} tokens; 1 to ${limits.maxSeqLen} are taken.`;
    }
    const token = tokenIds.find((id) => id < 0 || id >= vocabSize);
    if (token !== undefined) return `Sequence ${i} has the token ${token}; the vocabulary has ${vocabSize}.`;
    if (output !== undefined && !givesTokens(head, output))
      return `Sequence ${i} asks for ${output} of its tokens, of which the model has none.`;
    if (types === null) continue;
    const type = types.find((one) => one < 0 || one >= tokenTypes);
    if (type !== undefined || types.length !== length) {
      return `Sequence ${i} has ${types.length} token types${type === undefined ? '' : `, ${type} among them`}; ${length} from 0 to ${tokenTypes - 1} are expected.`;
    }
  }
  return null;
}
