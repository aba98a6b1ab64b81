import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import { QueueGateway } from '../../../cluster/gateway/queue-gateway.js';
import { type ModelCard, modelKey } from '../../../cluster/nats/beat.js';
import { GATEWAY_COST } from '../../../cluster/simulation/gateway-loop.js';
import { LearnedModels } from '../../../src/queue/learned-models.js';
import { LoadingWorkers } from '../../../src/queue/loading-workers.js';
import { cardText } from '../../../src/queue/model-card.js';
import { seededRandom } from '../../support/random.js';
import { median } from '../../support/statistics.js';
import { threadClock } from '../../support/thread-clock.mjs';
import { FakeFleet } from './fake-fleet.js';

export interface GatewayLoad {
  workers: number;
  routing: 'any' | 'cache';
  /** Requests that run at once, and those that wait in the gateway besides. */
  running: number;
  waiting: number;
  /** Tokens of an answer, and milliseconds between two of them. */
  tokens: number;
  tokenMs: number;
  /** Of the measurement at least, which lasts for whole answers, since they do not end evenly. As long a time in front of it does not count. */
  seconds: number;
  wholeCards: boolean;
}

export interface GatewayCost {
  requests: number;
  /** Milliseconds of the loop's processor time for a request, with all that workers say meanwhile, and those of its beats. */
  msPerRequest: number;
  beatMsPerRequest: number;
  /** Milliseconds of a request as `skein simulate` reckons them, with as many messages. */
  simulatedMsPerRequest: number;
  /** Longest turn of the loop, in the same milliseconds. */
  longestMs: number;
}

const TOKENIZER = Buffer.from(
  JSON.stringify({
    version: '1.0',
    added_tokens: [{ id: 0, content: '<pad>', special: true }],
    model: { type: 'BPE', vocab: { '<pad>': 0, a: 1, b: 2, ab: 3 }, merges: ['a b'] },
  }),
);
const PREFIX_TOKENS = 512;
const OWN_TOKENS = 128;
const NUM_PREFIXES = 64;
/** Messages in one turn of the loop: a socket gives about as many at once. */
const MESSAGES_IN_TURN = 128;
/** Milliseconds of the workers' time between two turns. */
const STEP_MS = 2;
/** Milliseconds of a turn in which nothing was to do: the machine's, and not the gateway's. */
const IDLE_MS = 0.3;

const threadNs = threadClock();
/** Milliseconds for which the main thread has had a processor. */
const threadMs = () => threadNs() / 1e6;

/** Milliseconds between two looks at the clock with nothing between them: so much of each measurement is the clock's own. */
function lookMs(): number {
  const looks = Array.from({ length: 10_001 }, () => {
    const beginMs = threadMs();
    return threadMs() - beginMs;
  });
  return median(looks);
}

/** A card as long as a real one. */
function cardOf(): ModelCard {
  const digest = createHash('sha256').update(TOKENIZER).digest('hex');
  const files = [{ name: 'tokenizer.json', bytes: TOKENIZER.length, digest }];
  const engine = {
    ...{ vocabSize: 50_000, endTokenIds: [0], maxInputLen: 8192, maxSeqLen: 8192, maxSequences: 64 },
    ...{ maxNumTokens: 4096, maxBeamWidth: 1, maxAttentionWindow: null, tokensPerBlock: 32 },
  };
  const info = {
    ...{ fingerprint: 'fp_0123456789ab', executor: 'native', instructionSet: 'avx512-vnni', kvDtype: 'f16' },
    ...{ architecture: 'LlamaForCausalLM', weights: 'int4', parameters: 134_515_008, threads: 8 },
  };
  const text = cardText({ files, engine, aliases: [] });
  return {
    name: 'm',
    aliases: [],
    text,
    fileName: 'm',
    files,
    info,
    engine,
    adapterRoom: null,
    adapters: [],
  };
}

/** Runs a gateway in this process before made-up workers, in real time. */
export async function measureGateway(load: GatewayLoad): Promise<GatewayCost> {
  const folder = mkdtempSync(join(tmpdir(), 'skein-gateway-'));
  const run = new Run(load, folder);
  try {
    return await run.measure();
  } finally {
    run.close();
    rmSync(folder, { recursive: true });
  }
}

class Run {
  readonly #load: GatewayLoad;
  readonly #fleet: FakeFleet;
  readonly #gateway: QueueGateway;
  readonly #key: string;
  readonly #random = seededRandom(54);
  readonly #prefixes: Int32Array[];
  #numEnded = 0;
  #numToSubmit = 0;
  /** Beats and iterations so far, in the order of workers. */
  #beats = 0;
  #iterations = 0;
  #nextToken = 1;
  #isLearned = false;
  #isSteady = false;
  readonly #lookMs = lookMs();
  #spentMs = 0;
  #longestMs = 0;

  constructor(load: GatewayLoad, folder: string) {
    this.#load = load;
    const model = cardOf();
    this.#key = modelKey(model);
    this.#prefixes = Array.from({ length: NUM_PREFIXES }, () => this.#drawn(PREFIX_TOKENS));
    const { workers, running, wholeCards, routing } = load;
    const isRouted = routing === 'cache';
    this.#fleet = new FakeFleet({
      ...{ workers, running, model, wholeCards },
      ...{ tellsCaches: isRouted, prefixes: this.#prefixes },
    });
    const port = this.#fleet;
    this.#gateway = new QueueGateway({
      ...{ id: 'g', port, workerWaitMs: 1e6, allowsDifferentBits: false, maxLocalPrefillLength: 512 },
      // Where the loop cannot keep pace beats come late.
      silence: { probeAfterMs: 1e6, lostAfterMs: 1e7, untoldAfterMs: 1e7 },
      ...(isRouted ? { routing: { port } } : {}),
      onBeat: (told) => learned.onBeat(told),
      onLost: () => learned.onLost(),
      onWarning: (message) => process.stderr.write(`${message}\n`),
    });
    port.gateway = this.#gateway;
    const learned = new LearnedModels({
      ...{ gateway: this.#gateway, folder, limits: { maxQueueSize: 1e6, fairQueueing: false } },
      loading: new LoadingWorkers(),
      readFile: async (_worker, _pool, _name, offset) => TOKENIZER.subarray(offset),
      bring: async (_, start) => {
        await start();
        this.#isLearned = true;
      },
      takeAway: async () => {},
      onWarning: (message) => process.stderr.write(`${message}\n`),
    });
  }

  #drawn(length: number): Int32Array {
    return Int32Array.from({ length }, () => Math.floor(this.#random() * 50_000));
  }

  async measure(): Promise<GatewayCost> {
    const { running, waiting, seconds } = this.#load;
    const answerMs = this.#load.tokens * this.#load.tokenMs;
    const ms = answerMs * Math.ceil((1000 * seconds) / answerMs);
    await this.#greet();
    // What workers are offered ahead lies in the stream, and does not wait.
    for (let more = running; more > 0; more = waiting - this.#numWaiting) {
      this.#numToSubmit += more;
      while (this.#numToSubmit > 0) await this.#turn(0);
    }
    this.#isSteady = true;
    await this.#runFor(ms);
    const before = {
      ...{ ended: this.#numEnded, beats: this.#fleet.numBeats, messages: this.#fleet.numMessages },
    };
    this.#spentMs = 0;
    this.#longestMs = 0;
    await this.#runFor(ms);
    const requests = this.#numEnded - before.ended;
    const messagesPerRequest = (this.#fleet.numMessages - before.messages) / requests;
    const { requestMs, tokenMs, messageMs } = GATEWAY_COST;
    const beatsPerRequest = (this.#fleet.numBeats - before.beats) / requests;
    return {
      requests,
      msPerRequest: this.#spentMs / requests,
      beatMsPerRequest: beatsPerRequest * (await this.#msPerBeat()),
      simulatedMsPerRequest: requestMs + this.#load.tokens * tokenMs + messagesPerRequest * messageMs,
      longestMs: this.#longestMs,
    };
  }

  /** Beats alone, as many as a second brings. */
  async #msPerBeat(): Promise<number> {
    const { workers } = this.#load;
    const count = Math.max(workers, 1000);
    let spentMs = 0;
    for (let at = 0; at < count; at++) {
      this.#fleet.beatAlone(at % workers);
      if (this.#fleet.numPrepared < MESSAGES_IN_TURN && at < count - 1) continue;
      const begin = threadMs();
      this.#fleet.tell();
      await turn();
      spentMs += this.#since(begin);
    }
    return spentMs / count;
  }

  /** Requests that neither a worker nor the stream has. */
  get #numWaiting(): number {
    return this.#gateway.countsOf(this.#key).waiting - this.#fleet.inStream;
  }

  /** All workers send their beats, and the model is learned. */
  async #greet(): Promise<void> {
    const { size } = this.#fleet;
    const tell = async (worker: number) => {
      this.#fleet.beatAlone(worker);
      this.#fleet.tell();
      await turn();
    };
    for (let worker = 0; worker < size; worker++) await tell(worker);
    while (!this.#isLearned) {
      await tell(0);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    for (let worker = 0; worker < size; worker++) await tell(worker);
  }

  /** Lets so much time pass for the workers: never more than passes here, and less where the loop cannot keep pace. */
  async #runFor(ms: number): Promise<void> {
    const begin = performance.now();
    this.#beats = 0;
    this.#iterations = 0;
    for (let elapsed = 0; elapsed < ms; ) {
      if (await this.#turn(elapsed)) continue;
      const left = performance.now() - begin - elapsed;
      if (left > 0) elapsed += Math.min(left, STEP_MS);
      else await this.#idle();
    }
  }

  async #idle(): Promise<void> {
    const begin = threadMs();
    await new Promise((resolve) => setTimeout(resolve, 1));
    const idleMs = this.#since(begin);
    // The gateway's own timers.
    if (idleMs > IDLE_MS) this.#note(idleMs);
  }

  /** Milliseconds of the thread since then. */
  #since(beginMs: number): number {
    return Math.max(0, threadMs() - beginMs - this.#lookMs);
  }

  #note(ms: number): void {
    this.#spentMs += ms;
    this.#longestMs = Math.max(this.#longestMs, ms);
  }

  /** What is due, or as much of it as one turn has room for. True: there is more. */
  async #turn(elapsedMs: number): Promise<boolean> {
    const { workers, tokenMs } = this.#load;
    const fleet = this.#fleet;
    const hasRoom = () => fleet.numPrepared < MESSAGES_IN_TURN;
    fleet.deal();
    fleet.holdNew();
    for (; hasRoom() && this.#beats < (elapsedMs * workers) / 1000; this.#beats++)
      fleet.beat(this.#beats % workers);
    for (; hasRoom() && this.#iterations < (elapsedMs * workers) / tokenMs; this.#iterations++)
      fleet.iterate(this.#iterations % workers);
    const requests = Array.from({ length: Math.min(this.#numToSubmit, 16) }, () => this.#request());
    this.#numToSubmit -= requests.length;
    const isFull = !hasRoom() || this.#numToSubmit > 0;
    if (fleet.numPrepared + requests.length === 0) return false;
    const begin = threadMs();
    fleet.tell();
    for (const request of requests) this.#submit(request);
    await turn();
    this.#note(this.#since(begin));
    return isFull;
  }

  #request(): TokenRequest {
    const promptTokens = new Int32Array(PREFIX_TOKENS + OWN_TOKENS);
    promptTokens.set(this.#prefixes[Math.floor(this.#random() * NUM_PREFIXES)]!);
    promptTokens.fill(this.#nextToken++ % 50_000, PREFIX_TOKENS);
    const { tokens } = this.#load;
    // The first ones end one after another, as all later ones do then.
    const maxNewTokens = this.#isSteady ? tokens : 1 + Math.floor(this.#random() * tokens);
    return { promptTokens, maxNewTokens, seed: 1n, temperature: 0.7 };
  }

  #submit(request: TokenRequest): void {
    const [stream] = this.#gateway.submit(this.#key, request);
    stream!.listen({
      onPiece: ({ finishReason }) => {
        if (finishReason === null) return;
        this.#numEnded += 1;
        this.#numToSubmit += 1;
      },
      onError: (error) => {
        throw error;
      },
    });
  }

  close(): void {
    this.#gateway.close();
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
