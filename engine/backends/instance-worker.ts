import { performance } from 'node:perf_hooks';
import { workerData } from 'node:worker_threads';
import { recordOf } from '../../base/error-record.js';
import { BatchClaims } from '../../callbacks/infer/batch-claims.js';
import type {
  BatchCommand,
  InstanceCommand,
  InstanceInfo,
  InstanceMessage,
  ModelCall,
} from '../../callbacks/infer/instance-messages.js';
import type { WorkerWires } from '../../callbacks/worker-data.js';
import type { WorkerLife } from '../../callbacks/worker-messages.js';
import { AnswerFlow } from './answer-flow.js';
import type { Instance, InstanceSetup, OpenInstance } from './backend.js';
import { BatchAnswers } from './batch-answers.js';
import { boundOutput } from './bounded-output.js';
import { CancelledRequests } from './cancelled-requests.js';
import { LoopWatch } from './loop-watch.js';
import { ModelCalls } from './model-calls.js';
import { ModelCode } from './model-code.js';
import { RunningRequest } from './running-request.js';
import { SequenceRunner } from './sequences/sequence-runner.js';
import { serveCommands } from './serve-commands.js';
import { boundedError, thrownText } from './thrown.js';
import { warmUp } from './warm-up.js';

/** Data that the worker of an instance is started with. */
export interface InstanceWorkerData {
  /** URL of the module that exports `openInstance`. */
  entry: string;
  setup: InstanceSetup;
  /** Memory of its BatchClaims; null: its batches are not recalled. */
  claims: SharedArrayBuffer | null;
}

/** Milliseconds between two errors for the log: a batch may take less than one. */
const REPORT_MS = 1000;

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
  guardThread(setup);
  const watch = new LoopWatch(wires.port);
  const flow = new AnswerFlow((answers) => post({ type: 'answers', answers }, [answers.bytes.buffer]), watch);
  const { openInstance } = (await import(entry)) as { openInstance: OpenInstance };
  const claims = shared === null ? null : new BatchClaims(shared);
  let isOpen = false;
  const calls = new ModelCalls(post, watch);
  const cancelled = new CancelledRequests();
  const infer = async (asked: ModelCall) => {
    if (!isOpen) throw new Error('other models can be asked once the instance is loaded: in execute');
    return calls.ask(asked);
  };
  const report = reporter(post);
  const sequences = await SequenceRunner.open(setup);
  const settled: LoopWatch['settled'] = (what, run) => watch.settled(what, run);
  const instance = await openInstance(setup, { infer, settled, report }); // init
  await instance.allocate?.();
  await instance.acquire?.();
  await warmUp(instance, setup, sequences);
  isOpen = true;
  const { instanceName } = setup;
  post({ type: 'ready', info: { instanceName, loadMs: performance.now() - startMs } });
  serveCommands<Exclude<InstanceCommand, { type: 'shutdown' }>>(wires, {
    handleAtOnce(command) {
      if (command.type === 'taken') flow.noteTaken();
      if (command.type === 'called') calls.settle(command);
      if (command.type === 'cancelled') cancelled.note(command);
      return command.type !== 'batch' && command.type !== 'ended';
    },
    async run(command) {
      if (command.type === 'ended') for (const one of command.sequences) sequences?.states.forget(one);
      if (command.type !== 'batch') return;
      const { slot } = command;
      if (slot !== null && claims?.claim(slot) === false) {
        const [memory, { answerMemory }] = [memoryOf(command), command];
        const transfer = [memory, answerMemory].filter((buffer) => buffer !== null);
        cancelled.drop(command.batch);
        post({ type: 'dropped', slot, memory, answerMemory }, transfer);
        return;
      }
      await runBatch(instance, setup, command, { flow, cancelled, sequences }, post);
    },
    async tearDown() {
      await instance.release?.();
      await instance.deallocate?.();
      await instance.close(); // destroy
    },
  });
  watch.noteServing();
}

/** Whatever code of the model does in this thread, what crosses to the host's of it is bounded. */
function guardThread({ files, instanceName }: InstanceSetup): void {
  const code = new ModelCode(files);
  boundOutput(`instance ${instanceName}`);
  process.on('uncaughtException', (thrown: unknown) => {
    // A listener of the model's own code may want to go on.
    if (process.listenerCount('uncaughtException') === 1) throw code.uncaught(thrown);
  });
}

/** Reports errors to the host for its log, one at most every REPORT_MS. */
function reporter(post: (message: InstanceMessage) => void): (error: Error) => void {
  let lastMs = Number.NEGATIVE_INFINITY;
  return (error) => {
    const nowMs = performance.now();
    if (nowMs - lastMs < REPORT_MS) return;
    lastMs = nowMs;
    post({ type: 'error', error: recordOf(boundedError(error)) });
  };
}

async function runBatch(
  instance: Instance,
  { config }: InstanceSetup,
  command: BatchCommand,
  {
    flow,
    cancelled,
    sequences,
  }: { flow: AnswerFlow; cancelled: CancelledRequests; sequences: SequenceRunner | null },
  post: (message: InstanceMessage, transfer: ArrayBuffer[]) => void,
): Promise<void> {
  const { bytes, requests } = command;
  const { decoupled } = config.model_transaction_policy;
  const answers = new BatchAnswers(flow, requests.length, decoupled, command.answerMemory);
  const beganMs = performance.now();
  const shared = { config, sequences, answers };
  const running = requests.map((request, i) => new RunningRequest(request, i, bytes, shared));
  const rows = command.rows === null ? undefined : sequences?.rowsOf(running, command.rows);
  cancelled.begin(command.batch, running);
  const unpackedMs = performance.now();
  try {
    await instance.execute(running, rows);
    for (const request of running) request.end();
  } catch (error) {
    for (const request of running) request.fail(`the model '${config.name}' failed: ${thrownText(error)}`);
  }
  for (const { sequence } of running) if (sequence?.end) sequences?.states.forget(sequence.number);
  const again = running.flatMap(({ isAgain }, i) => (isAgain ? [i] : []));
  const ranMs = performance.now();
  const rest = await answers.finish();
  const times = {
    inputNs: 1e6 * (unpackedMs - beganMs),
    inferNs: 1e6 * (ranMs - unpackedMs),
    outputNs: 1e6 * (performance.now() - ranMs),
  };
  const memory = memoryOf(command);
  post({ type: 'done', answers: rest, again, times, memory }, [
    rest.bytes.buffer,
    ...(memory === null ? [] : [memory]),
  ]);
}

/** The buffer that goes back to the host. If code has transferred it elsewhere, there is none any more. */
function memoryOf({ bytes, isLent }: BatchCommand): ArrayBuffer | null {
  return isLent && bytes.byteLength > 0 ? (bytes.buffer as ArrayBuffer) : null;
}
