import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import type { QueueGateway } from '../../../cluster/gateway/queue-gateway.js';
import { type Answer, ask } from '../../../tools/support/queue/answers.js';
import { TappedProxy } from '../../../tools/support/queue/nats-process.js';
import { type LabWorker, QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { cleanEnvironment, runCli, testCacheDir } from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

const MODEL = ['--model', `tiny=${tinyModelPath('gqa')}`, '--weights', 'f32', '--threads', '1'];
const workerWith = (kvDtype: string) => [
  ...[...MODEL, '--cache-dir', testCacheDir, '--kv-cache-tokens', '8192', '--kv-cache-dtype', kvDtype],
  ...['--speculate', 'ngram', '--max-beam-width', '2', '--max-active-requests', '16'],
];
const WORKER = workerWith('f32');
const PREFILL = [...WORKER, '--disaggregation-mode', 'prefill'];
/** Full blocks of 32 tokens in front of the last token of a prompt. */
const HANDED_OVER = 192;

const TOKENS = { maxNewTokens: 24, temperature: 1, seed: 11n };
const BASE = { ...TOKENS, returnLogProbs: true, topLogProbs: 2 };
const KINDS: Readonly<Record<string, Omit<TokenRequest, 'promptTokens'>>> = {
  sampled: BASE,
  greedy: { ...TOKENS, temperature: 0 },
  several: { ...TOKENS, numSequences: 3 },
  penalties: { ...BASE, repetitionPenalty: 1.2, frequencyPenalty: 0.3, noRepeatNgramSize: 3 },
  guided: { ...TOKENS, guide: { type: 'regex', guide: '[ab]{20,24}' }, endTokenIds: [2] },
  beams: { ...BASE, temperature: 0, beams: { width: 2 } },
  values: { ...BASE, returnContextLogProbs: true },
  whole: { ...BASE, streaming: false },
};
const NAMES = Object.keys(KINDS);

/** Is in every message with a slice of blocks, in front of them. */
const SLICE = '"blocksPart"';
const isSlice = (bytes: Buffer) => bytes.includes(SLICE);

/** Requests of all kinds with prompts of their own, which no cache has yet. */
let salt = 0;
function requests(): TokenRequest[] {
  salt++;
  return NAMES.map((name, kind) => {
    const promptTokens = Array.from({ length: 200 }, (_, i) => 5 + ((i * (kind + 3) + i * i) % 85));
    return { promptTokens, cacheSalt: BigInt(100 * salt + kind), ...KINDS[name]! };
  });
}

describeWithNats('long prompts that prefill workers compute', () => {
  const folder = mkdtempSync(join(tmpdir(), 'skein-prefill-'));
  let lab: QueueLab;
  /** The wire of the prefill workers. */
  let wire: TappedProxy;
  /** A gateway that knows of no prefill workers. */
  let local: QueueGateway;
  let expected: Answer[][];

  const askAll = (gateway = lab.gateway): Promise<Answer[][]> =>
    Promise.all(requests().map((request) => ask(gateway, lab.model, request)));
  const prefillers = () => lab.gateway.roster.prefillersOf(lab.model).flatMap(({ takers }) => [...takers]);
  const start = async (args: readonly string[], url?: string): Promise<LabWorker> => {
    const worker = await lab.startWorker(args, url);
    await until('the gateway to hear of it', () => lab.gateway.roster.find(worker.id) !== undefined);
    return worker;
  };
  /** Workers of both kinds, one and two. */
  const complete = async (): Promise<void> => {
    while (lab.gateway.numWorkersOf(lab.model) < 2) await start(WORKER);
    if (prefillers().length === 0) await start(PREFILL, `nats://127.0.0.1:${wire.port}`);
  };
  const isClean = async (): Promise<void> => {
    expect(lab.gateway.size).toBe(0);
    await lab.untilIdle();
    await until('the stream to be empty', async () => (await lab.inStream()) === 0);
  };
  /** Tokens of each request's prompt that its worker found in its cache, while `run` runs. */
  const cachedWhile = async (run: () => Promise<void>): Promise<number[]> => {
    const cached: number[] = [];
    const stop = lab.onFrame(({ piece }) => {
      if (piece.cachedTokens !== undefined) cached.push(piece.cachedTokens);
    });
    await run();
    stop();
    return cached;
  };
  const endPrefillers = async (): Promise<void> => {
    for (const worker of lab.workers) if (worker.isPrefill) await lab.kill(worker);
    await until('the gateway to notice', () => prefillers().length === 0);
  };
  /** Calls `act` with the prefill worker when it sends the first slice of blocks. */
  const atHandOver = (act: (prefiller: LabWorker) => void): { slices: number } => {
    const seen = { slices: 0 };
    const prefiller = [...lab.workers].find(({ isPrefill }) => isPrefill)!;
    wire.tap = (bytes) => {
      if (isSlice(bytes) && seen.slices++ === 0) act(prefiller);
      return bytes;
    };
    return seen;
  };
  afterEach(() => {
    wire.tap = (bytes) => bytes;
  });

  beforeAll(async () => {
    // A message holds a tenth of a prompt's blocks, so that a hand-over has many parts.
    const config = join(folder, 'nats.conf');
    writeFileSync(config, 'max_payload: 9000\n');
    const natsArguments = ['-c', config];
    const silence = { probeAfterMs: 400, lostAfterMs: 6_000, untoldAfterMs: 10_000 };
    const options = { nats: testNats!, natsArguments, silence, environment: cleanEnvironment({}) };
    lab = await QueueLab.start({ ...options, maxLocalPrefillLength: 64 });
    wire = await TappedProxy.start(lab.nats.port);
    local = await lab.openGateway(Number.POSITIVE_INFINITY);
    await start(WORKER);
    await start(WORKER);
    await until('the other gateway', () => local.numWorkersOf(lab.model) === 2);
    const cached = await cachedWhile(async () => {
      expected = await askAll(local);
    });
    expect(Math.max(...cached)).toBe(0);
  });
  afterAll(async () => {
    local?.close();
    await lab?.close();
    wire?.close();
    rmSync(folder, { recursive: true });
  });

  it('get the same answers, to the bit, and their blocks are not computed again', async () => {
    await complete();
    const seen = atHandOver(() => {});
    const answers: Answer[][] = [];
    const cached = await cachedWhile(async () => {
      for (const request of requests()) answers.push(await ask(lab.gateway, lab.model, request));
    });
    expect(answers).toEqual(expected);
    // Values of the prompt need all of it, and a prompt that is not taken within a second is not waited for.
    expect(cached.filter((count) => count === HANDED_OVER).length).toBeGreaterThan(2);
    expect(seen.slices).toBeGreaterThan(2 * 5);
    await isClean();
  });

  it('are sent only those of their blocks that the worker which answers does not have', async () => {
    await complete();
    const [, other] = [...lab.workers].filter(({ isPrefill }) => !isPrefill);
    await lab.kill(other!);
    await until('the gateways to notice', () =>
      [lab.gateway, local].every((gateway) => gateway.numWorkersOf(lab.model) === 1),
    );
    const [request] = requests();
    let bytes = 0;
    const stop = await lab.onFetch(({ length }) => {
      bytes += length;
    });
    /** Asks until a prefill worker was fast enough to be waited for. @returns bytes that were asked for */
    const fetched = async (next: () => TokenRequest): Promise<number> => {
      for (;;) {
        lab.prefilled.length = 0;
        bytes = 0;
        const asked = next();
        const answer = await ask(lab.gateway, lab.model, asked);
        expect(await ask(local, lab.model, asked)).toEqual(answer);
        if (lab.prefilled.length > 0) return bytes;
      }
    };
    const all = await fetched(() => ({ ...request!, cacheSalt: BigInt(++salt) << 20n }));
    expect(all % (HANDED_OVER / 32)).toBe(0);
    // Four blocks of the prompt are the one's before, two are new.
    let turn = 0;
    const some = await fetched(() => {
      turn++;
      const promptTokens = Array.from(request!.promptTokens, (token, i) =>
        i < 128 ? token : 5 + ((i * turn) % 80),
      );
      return { ...request!, cacheSalt: BigInt(salt) << 20n, promptTokens };
    });
    expect(some).toBe(all / 3);
    stop();
    await isClean();
  });

  it.each<[string, (prefiller: LabWorker) => void]>([
    ['is killed', (prefiller) => void lab.kill(prefiller)],
    ['is stopped', (prefiller) => void prefiller.child.kill('SIGSTOP')],
    ['is told to end', (prefiller) => void prefiller.child.kill('SIGTERM')],
  ])('get the same answers if the prefill worker %s in the middle of a hand-over', async (_, act) => {
    await complete();
    const seen = atHandOver(act);
    expect(await askAll()).toEqual(expected);
    expect(seen.slices).toBeGreaterThan(0);
    await endPrefillers();
    await isClean();
  });

  it('get the same answers if the prefill worker is killed while it computes them', async () => {
    await complete();
    const stop = lab.onHold(({ worker }) => {
      const found = lab.find(worker);
      if (!found?.isPrefill) return;
      stop();
      void lab.kill(found);
    });
    expect(await askAll()).toEqual(expected);
    await until('its end', () => prefillers().length === 0);
    await isClean();
  });

  it('get the same answers if the worker that fetches their blocks is killed', async () => {
    await complete();
    const killed: Promise<void>[] = [];
    lab.prefilled.length = 0;
    wire.tap = (bytes) => {
      if (!isSlice(bytes) || killed.length > 0) return bytes;
      // The worker that fetches is reported on another wire, perhaps a slice later.
      const holders = lab.prefilled.map((id) => lab.holderOf(id));
      const fetches = holders.find((worker) => worker?.isPrefill === false);
      if (fetches !== undefined) killed.push(lab.kill(fetches));
      return bytes;
    };
    expect(await askAll()).toEqual(expected);
    expect(killed).toHaveLength(1);
    await isClean();
  });

  it('get the same answers if the blocks are damaged on their way', async () => {
    await complete();
    let numDamaged = 0;
    wire.tap = (bytes) => {
      // Inside a slice, long after what says that it is one: a packet may end anywhere in a message, and NATS
      // must still understand it.
      const place = bytes.indexOf(SLICE) + 1000;
      if (!isSlice(bytes) || place >= bytes.length) return bytes;
      numDamaged++;
      bytes[place]! ^= 1;
      return bytes;
    };
    let answers: Answer[][] = [];
    const cached = await cachedWhile(async () => {
      answers = await askAll();
    });
    expect(answers).toEqual(expected);
    expect(numDamaged).toBeGreaterThan(0);
    expect(Math.max(...cached)).toBeLessThan(HANDED_OVER);
    await isClean();
  });

  it('are not sent to a prefill worker whose blocks are others', async () => {
    await complete();
    await endPrefillers();
    const other = await start([...workerWith('bf16'), '--disaggregation-mode', 'prefill']);
    const strange = await start([...PREFILL, '--tokens-per-block', '16']);
    lab.prefilled.length = 0;
    expect(await askAll()).toEqual(expected);
    expect(lab.prefilled).toEqual([]);
    for (const worker of [other, strange]) await lab.kill(worker);
    await isClean();
  });

  it('need a worker that can hand blocks over', async () => {
    for (const more of [['--micro-batch-overlap'], ['--no-prefix-caching']]) {
      const { code, stderr } = await runCli(['work', '--nats', lab.nats.url, ...PREFILL, ...more], {});
      expect(stderr).toContain('hands over blocks of its KV cache');
      expect(code).toBe(2);
    }
  });
});
