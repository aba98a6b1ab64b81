import { performance } from 'node:perf_hooks';
import { workerData } from 'node:worker_threads';
import { messageOf } from '../../base/error-text.js';
import { BatchClaims } from '../../callbacks/infer/batch-claims.js';
import type { InferCaller } from '../../callbacks/infer/infer-types.js';
import type {
  BatchCommand,
  InstanceCommand,
  InstanceInfo,
  InstanceMessage,
  ModelCall,
  ModelCallResponse,
} from '../../callbacks/infer/instance-messages.js';
import type { WorkerLife } from '../../callbacks/worker-messages.js';
import type { WorkerWires } from '../../callbacks/worker-wires.js';
import type { Instance, InstanceSetup, OpenInstance } from './backend.js';
import { AnswerWriter } from './packed-answers.js';
import { RunningRequest } from './running-request.js';
import { serveCommands } from './serve-commands.js';

/** Data that the worker of an instance is started with. */
export interface InstanceWorkerData {
  /** URL of the module that exports `openInstance`. */
  entry: string;
  setup: InstanceSetup;
  /** Memory of its BatchClaims; null: its batches are not recalled. */
  claims: SharedArrayBuffer | null;
}

/** Calls to other models that have no answer yet, by their numbers. */
const calls = new Map<
  number,
  { resolve(responses: readonly ModelCallResponse[]): void; reject(error: Error): void }
>();
let numCalls = 0;
/** Batches that wait for what the running one asks of other models. */
let callers: readonly InferCaller[] = [];

await main(workerData as InstanceWorkerData & WorkerWires);

/** The life of an instance: it is set up, runs batches in their order, and is torn down. */
async function main({
  entry,
  setup,
  claims: shared,
  ...wires
}: InstanceWorkerData & WorkerWires): Promise<void> {
  const startMs = performance.now();
  const post = (message: InstanceMessage | WorkerLife<InstanceInfo>, transfer: ArrayBuffer[] = []) =>
    wires.port.postMessage(message, transfer);
  const { openInstance } = (await import(entry)) as { openInstance: OpenInstance };
  const claims = shared === null ? null : new BatchClaims(shared);
  let isOpen = false;
  const infer = async (asked: ModelCall) => {
    if (!isOpen) throw new Error('other models can be asked once the instance is loaded: in execute');
    const call = numCalls++;
    return new Promise<readonly ModelCallResponse[]>((resolve, reject) => {
      calls.set(call, { resolve, reject });
      post({ type: 'call', call, asked, callers });
    });
  };
  const instance = await openInstance(setup, { infer }); // init
  await instance.allocate?.();
  await instance.acquire?.();
  isOpen = true;
  const { instanceName } = setup;
  post({ type: 'ready', info: { instanceName, loadMs: performance.now() - startMs } });
  serveCommands<Exclude<InstanceCommand, { type: 'shutdown' }>>(wires, {
    handleAtOnce(command) {
      if (command.type === 'called') settleCall(command);
      return command.type === 'called';
    },
    async run(command) {
      if (command.type !== 'batch') return;
      const { slot } = command;
      if (slot !== null && claims?.claim(slot) === false) {
        const [memory, { answerMemory }] = [memoryOf(command), command];
        const transfer = [memory, answerMemory].filter((buffer) => buffer !== null);
        post({ type: 'dropped', slot, memory, answerMemory }, transfer);
        return;
      }
      callers = command.callers;
      await runBatch(instance, setup, command, post);
    },
    async tearDown() {
      await instance.release?.();
      await instance.deallocate?.();
      await instance.close(); // destroy
    },
  });
}

function settleCall({ call, responses, error }: Extract<InstanceCommand, { type: 'called' }>): void {
  const waiting = calls.get(call);
  calls.delete(call);
  if (responses === null) waiting?.reject(new Error(error ?? 'The model gave no reason.'));
  else waiting?.resolve(responses);
}

/** Runs a batch and answers each of its requests, whatever the instance's code does. */
async function runBatch(
  instance: Instance,
  { config }: InstanceSetup,
  command: BatchCommand,
  post: (message: InstanceMessage, transfer: ArrayBuffer[]) => void,
): Promise<void> {
  const { bytes, requests } = command;
  const writer = new AnswerWriter(command.answerMemory);
  let isFlushing = false;
  const flush = () => {
    isFlushing = false;
    const answers = writer.take();
    if (answers.responses.length > 0) post({ type: 'answers', answers }, [answers.bytes.buffer]);
  };
  // Answers of a decoupled model go as they come, all of one turn together; others with the end of the batch.
  const onAnswer = () => {
    if (isFlushing || !config.model_transaction_policy.decoupled) return;
    isFlushing = true;
    setImmediate(flush);
  };
  const beganMs = performance.now();
  const running = requests.map(
    (request, i) => new RunningRequest(request, i, bytes, config, writer, onAnswer),
  );
  const unpackedMs = performance.now();
  try {
    await instance.execute(running);
    for (const request of running) request.end();
  } catch (error) {
    for (const request of running) request.fail(`the model '${config.name}' failed: ${messageOf(error)}`);
  }
  const ranMs = performance.now();
  const answers = writer.take();
  const times = {
    inputNs: 1e6 * (unpackedMs - beganMs),
    inferNs: 1e6 * (ranMs - unpackedMs),
    outputNs: 1e6 * (performance.now() - ranMs),
  };
  const memory = memoryOf(command);
  post({ type: 'done', answers, times, memory }, [
    answers.bytes.buffer,
    ...(memory === null ? [] : [memory]),
  ]);
}

/** What goes back to the host. Code may have handed the buffer on to somebody else: then it is none any more. */
function memoryOf({ bytes, isLent }: BatchCommand): ArrayBuffer | null {
  return isLent && bytes.byteLength > 0 ? (bytes.buffer as ArrayBuffer) : null;
}
