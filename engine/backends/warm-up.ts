import { BufferPool } from '../../base/buffer-pool.js';
import type { ModelConfig, ModelWarmup } from '../../models/repository/model-config.js';
import { BackendError, type Instance, type InstanceSetup } from './backend.js';
import type { AnswerSink } from './batch-answers.js';
import { packBatch } from './packed-batch.js';
import { RunningRequest } from './running-request.js';
import type { SequenceRunner } from './sequences/sequence-runner.js';
import { thrownText } from './thrown.js';
import { warmupInputs } from './warmup-data.js';

/** Different reasons of failed requests of a sample that are told. */
const MAX_REASONS = 4;

/**
 * Runs the samples of `model_warmup` on an instance that nobody has asked yet: `batch_size` requests with one row each, together, `count`
 * times. Nothing of it is counted, and answers are dropped.
 * @throws BackendError with the sample's name where a request of it fails, in Triton's words
 */
export async function warmUp(
  instance: Instance,
  { config, files }: InstanceSetup,
  sequences: SequenceRunner | null,
): Promise<void> {
  for (const sample of config.model_warmup ?? []) {
    if (sample.batch_size === 0) continue;
    const inputs = await warmupInputs(config, sample, files.directory);
    for (let i = 0; i < Math.max(1, sample.count); i++) {
      const reasons = await runSample(instance, { config, sequences }, sample, inputs);
      if (reasons.length === 0) continue;
      throw new BackendError(`failed to run warmup sample '${sample.name}': ${reasons.join('; ')}`);
    }
  }
}

/** Why requests of the sample failed. */
async function runSample(
  instance: Instance,
  { config, sequences }: { config: ModelConfig; sequences: SequenceRunner | null },
  { batch_size: batchSize }: ModelWarmup,
  inputs: Awaited<ReturnType<typeof warmupInputs>>,
): Promise<string[]> {
  const members = Array.from({ length: batchSize }, (_, slot) => ({
    id: '',
    inputs,
    outputs: null,
    parameters: {},
    batchSize: 1,
    // Each is a sequence that begins and ends with it, so that nothing is kept of it.
    packedSequence: sequences && { number: slot, slot, id: BigInt(slot + 1), start: true, end: true },
  }));
  // A batch has memory of its own: code may change it, or hand it on.
  const { bytes, requests } = packBatch(members, new BufferPool({ maxKept: 0 }));
  const reasons = new Set<string>();
  const running = requests.map(
    (request, i) => new RunningRequest(request, i, bytes, { config, sequences, answers: sinkOf(reasons) }),
  );
  try {
    await instance.execute(running, sequences?.rowsOf(running, batchSize));
    for (const request of running) request.end();
  } catch (error) {
    for (const request of running) request.fail(thrownText(error));
  }
  return [...reasons];
}

function sinkOf(reasons: Set<string>): AnswerSink {
  return {
    whyFull: () => null,
    respond: () => {},
    end: () => {},
    fail: (_, reason) => {
      if (reasons.size < MAX_REASONS) reasons.add(reason);
    },
    room: Promise.resolve(),
  };
}
