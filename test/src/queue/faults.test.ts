import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TokenRequest } from '../../../callbacks/token-request.js';
import { type Answer, ask } from '../../../tools/support/queue/answers.js';
import { SwallowingProxy } from '../../../tools/support/queue/nats-process.js';
import { type LabWorker, QueueLab, until } from '../../../tools/support/queue/queue-lab.js';
import { runningProcesses } from '../../../tools/support/running-processes.js';
import { tinyModelPath } from '../../../tools/support/test-engine.js';
import { draws } from '../../support/scale.js';
import { cleanEnvironment, testCacheDir } from '../support/skein-process.js';
import { describeWithNats, testNats } from '../support/test-nats.js';

const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/${name}`, import.meta.url));
const WORKER = [
  ...[
    '--model',
    `tiny=${tinyModelPath('gqa')}`,
    '--weights',
    'f32',
    '--threads',
    '1',
    '--cache-dir',
    testCacheDir,
  ],
  ...['--lora', `plain=${fixture('lora-plain')}`, '--max-beam-width', '2', '--speculate', 'ngram'],
  ...['--max-active-requests', '32', '--kv-cache-tokens', '8192'],
];
const PROMPT = [5, 9, 12, 30, 7, 7, 40, 3];
/** Their tokens cross as numbers only, those of BASE with values. */
const TOKENS: TokenRequest = { promptTokens: PROMPT, maxNewTokens: 40, temperature: 1, seed: 11n };
const BASE: TokenRequest = { ...TOKENS, returnLogProbs: true, topLogProbs: 2 };

/** Requests whose rest depends on what was before it, each in its own way. */
const REQUESTS: Readonly<Record<string, TokenRequest>> = {
  first: { ...BASE, maxNewTokens: 60 },
  greedy: { ...TOKENS, temperature: 0 },
  unseeded: { promptTokens: PROMPT, maxNewTokens: 30, temperature: 1, seed: 2n ** 64n - 1n },
  several: { ...TOKENS, numSequences: 3, seed: 12n },
  penalties: {
    ...TOKENS,
    repetitionPenalty: 1.2,
    presencePenalty: 0.4,
    frequencyPenalty: 0.3,
    noRepeatNgramSize: 3,
  },
  mirostat: { ...BASE, mirostat: 2, mirostatTau: 3 },
  mirostats: { ...BASE, mirostat: 1, numSequences: 2, seed: 13n },
  dry: { ...TOKENS, dryMultiplier: 0.8, dryAllowedLength: 2 },
  xtc: { ...BASE, xtcProbability: 0.5, minP: 0.02 },
  long: { ...BASE, minLength: 35, endTokenIds: [2, 3, 4] },
  guided: { ...TOKENS, guide: { type: 'regex', guide: '[ab]{24,40}' }, endTokenIds: [2] },
  guideds: { ...BASE, numSequences: 2, guide: { type: 'regex', guide: '([ab]{3}c){6,9}' }, endTokenIds: [2] },
  prompt: { ...BASE, returnContextLogProbs: true, numSequences: 2 },
  adapter: { ...TOKENS, adapterName: 'plain' },
  drafted: { ...TOKENS, temperature: 0, promptTokens: [...PROMPT, ...PROMPT, ...PROMPT], maxNewTokens: 50 },
  beams: { ...BASE, temperature: 0, beams: { width: 2 } },
  whole: { ...BASE, streaming: false },
};
const NAMES = Object.keys(REQUESTS);

describeWithNats.each(['cache', 'any'] as const)('requests over the work queue, to %s', (routing) => {
  /** Routings differ in who gets a request. What becomes of it there is the same code: of each kind of fault the second has one. */
  const takesAll = routing === 'cache';
  let lab: QueueLab;
  let undisturbed: Map<string, Answer[]>;

  const askAll = async (): Promise<Map<string, Answer[]>> => {
    const model = lab.model;
    const answers = await Promise.all(NAMES.map((name) => ask(lab.gateway, model, REQUESTS[name]!)));
    return new Map(NAMES.map((name, i) => [name, answers[i]!]));
  };
  const atLeast = async (count: number): Promise<void> => {
    while (lab.workers.size < count) await lab.startWorker(WORKER);
    await until(
      'the gateway to hear of them',
      () => lab.gateway.numWorkersOf(lab.model) === lab.workers.size,
    );
  };
  /** Nothing is left anywhere. */
  const isClean = async (): Promise<void> => {
    expect(lab.gateway.size).toBe(0);
    await lab.untilIdle();
    await until('the stream to be empty', async () => (await lab.inStream()) === 0);
  };
  /** Kills the worker of a request's frame whose tokens the condition holds for, once. */
  const killAt = (
    holds: (first: number, last: number, isEnd: boolean) => boolean,
    times = 1,
  ): Promise<void>[] => {
    const ends: Promise<void>[] = [];
    const stop = lab.onFrame(({ worker, index, piece }) => {
      const found = lab.find(worker);
      const isFirst = piece.logProbs !== undefined;
      if (
        found === undefined ||
        !isFirst ||
        !holds(index, index + piece.tokens.length - 1, piece.finishReason !== null)
      )
        return;
      ends.push(lab.kill(found));
      if (ends.length >= times) stop();
    });
    return ends;
  };

  beforeAll(async () => {
    lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}), routing });
    await atLeast(2);
    undisturbed = await askAll();
  });
  afterAll(() => lab?.close());

  it('are answered, and leave nothing behind', async () => {
    expect([...undisturbed.keys()]).toEqual(NAMES);
    expect(undisturbed.get('first')![0]!.tokens).toHaveLength(60);
    expect(undisturbed.get('several')).toHaveLength(3);
    expect(undisturbed.get('beams')![0]!.cumLogProb).toBeLessThan(0);
    expect(undisturbed.get('prompt')![0]!.contextLogProbs).toHaveLength(PROMPT.length - 1);
    expect(undisturbed.get('adapter')).not.toEqual(undisturbed.get('first'));
    for (const answers of undisturbed.values())
      for (const { finishReason } of answers) expect(finishReason).not.toBeNull();
    await isClean();
  });

  const moments: [string, (first: number, last: number, isEnd: boolean) => boolean][] = [
    // A frame has several tokens where the machine is busy.
    ['at token 0', (first) => first === 0],
    ['at token 17', (_, last) => last >= 17],
    ['at a last token', (_first, _last, isEnd) => isEnd],
  ];
  it.each(moments.filter((_, index) => takesAll === (index !== 1) || draws(1) > 1))(
    'are the same to the bit if their worker is killed %s',
    async (_, holds) => {
      await atLeast(2);
      const killed = killAt(holds);
      const answers = await askAll();
      expect(killed).toHaveLength(1);
      expect(answers).toEqual(undisturbed);
      await isClean();
    },
  );

  if (takesAll) {
    it('are the same if a worker is killed while it reads the prompts, and another one later', async () => {
      await atLeast(2);
      const ends: Promise<void>[] = [];
      const stop = lab.onHold(({ worker }) => {
        const found = lab.find(worker);
        if (found === undefined) return;
        stop();
        ends.push(lab.kill(found));
        ends.push(...killAt((_, last) => last >= 20));
        void lab.startWorker(WORKER);
      });
      const answers = await askAll();
      expect(ends.length).toBeGreaterThan(0);
      expect(answers).toEqual(undisturbed);
      await until('the new worker', () => lab.workers.size > 0);
      await isClean();
    });

    it('move if their worker is told to end, which then ends', async () => {
      await atLeast(2);
      let leaving: LabWorker | undefined;
      const stop = lab.onFrame(({ worker, index }) => {
        if (index < 3) return;
        stop();
        leaving = lab.find(worker);
        leaving?.child.kill('SIGTERM');
      });
      const answers = await askAll();
      expect(answers).toEqual(undisturbed);
      await until('the worker to end', () => leaving!.child.exitCode !== null);
      expect(leaving!.child.exitCode).toBe(0);
      lab.workers.delete(leaving!);
      await isClean();
    });
  }

  const stores: [string, boolean][] = [
    ['without', false],
    ['with', true],
  ];
  it.each(stores.filter((_, index) => takesAll || (index === 0 && draws(1) > 1)))(
    'are the same if nats-server is killed, and comes again %s its store',
    async (_, keepsStore) => {
      await atLeast(2);
      let restarted: Promise<void> | undefined;
      const stop = lab.onFrame(({ index }) => {
        if (index < 5) return;
        stop();
        restarted = lab.nats.kill(keepsStore).then(() => lab.nats.startAgain());
      });
      const answers = await askAll();
      await restarted;
      expect(restarted).toBeDefined();
      expect(answers).toEqual(undisturbed);
      await isClean();
    },
  );
});

describeWithNats('a worker that is silent', () => {
  let lab: QueueLab;
  beforeAll(async () => {
    const silence = { probeAfterMs: 300, lostAfterMs: 1_500, untoldAfterMs: 10_000 };
    lab = await QueueLab.start({ nats: testNats!, silence, environment: cleanEnvironment({}) });
  });
  afterAll(() => lab?.close());

  it('is replaced if it is stopped, or cut off, and what it says later changes nothing', async () => {
    const proxy = await SwallowingProxy.start(lab.nats.port);
    const first = await lab.startWorker(WORKER);
    // The gateway may learn of it after the lab.
    await until('the first worker', () => lab.gateway.numWorkersOf(lab.model) === 1);
    const ask1 = () => ask(lab.gateway, lab.model, REQUESTS.first!);
    const undisturbed = await ask1();
    for (const kind of ['stopped', 'cut off']) {
      const silent =
        kind === 'stopped' ? first : await lab.startWorker(WORKER, `nats://127.0.0.1:${proxy.port}`);
      if (kind === 'cut off') await lab.kill(first);
      await until('one worker', () => lab.gateway.numWorkersOf(lab.model) === 1);
      const silence = (isSilent: boolean) => {
        if (kind === 'cut off') proxy.isSwallowing = isSilent;
        else silent.child.kill(isSilent ? 'SIGSTOP' : 'SIGCONT');
      };
      const stop = lab.onFrame(({ index }) => {
        if (index < 4) return;
        stop();
        silence(true);
      });
      const asked = ask1();
      await until('its silence', () => lab.gateway.numWorkersOf(lab.model) === 0);
      const other = await lab.startWorker(WORKER);
      expect(await asked).toEqual(undisturbed);
      silence(false);
      await until('it to be empty', async () => (await lab.held(silent).catch(() => 1)) === 0);
      expect(lab.gateway.size).toBe(0);
      expect(await ask1()).toEqual(undisturbed);
      await lab.kill(other);
    }
    proxy.close();
  });
});

/** Kills its process, soon, when a prompt of 77 tokens goes to the engine, which never gets it. */
const POISONED = `
  import { MessagePort } from 'node:worker_threads';
  const post = MessagePort.prototype.postMessage;
  const isPoison = (value) =>
    ArrayBuffer.isView(value) ? value.length === 77
    : typeof value === 'object' && value !== null && Object.values(value).some(isPoison);
  MessagePort.prototype.postMessage = function (message, ...more) {
    if (message?.type !== 'requests' || !isPoison(message)) return post.call(this, message, ...more);
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), 300);
  };`;

describeWithNats('a request that kills each worker', () => {
  it('ends with an error after three attempts, and the others end with their answers', async () => {
    const lab = await QueueLab.start({
      nats: testNats!,
      environment: cleanEnvironment({}),
      routing: 'cache',
    });
    const mortal = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(POISONED)}` };
    const start = () => lab.startWorker(WORKER, lab.nats.url, mortal);
    await start();
    const alone = await ask(lab.gateway, lab.model, REQUESTS.first!);
    let deaths = 0;
    const replacing = (async () => {
      while (deaths < 3) {
        const [worker] = lab.workers;
        await until('a death', () => worker!.child.signalCode !== null);
        deaths++;
        lab.workers.delete(worker!);
        await start();
      }
    })();
    const poison = ask(lab.gateway, lab.model, { ...BASE, promptTokens: Array(77).fill(9) });
    const other = ask(lab.gateway, lab.model, REQUESTS.first!);
    await expect(poison).rejects.toThrow(
      'The request was begun 3 times, and each time its worker was lost; it is not tried again.',
    );
    await replacing;
    expect(await other).toEqual(alone);
    expect(deaths).toBe(3);
    expect([...lab.workers].map(({ child }) => child.signalCode)).toEqual([null]);
    await lab.close();
  });
});

describeWithNats('workers that are not equal', () => {
  it.each([
    [false, ['--kv-cache-dtype', 'int8']],
    // Other bits, and other limits, which are no obstacle either.
    [true, ['--kv-cache-dtype', 'int8', '--max-active-requests', '3', '--max-context-tokens', '220']],
  ])('go on with an answer only if bits may differ: %s, %j', async (allowsDifferentBits, more) => {
    const environment = cleanEnvironment({});
    const lab = await QueueLab.start({
      nats: testNats!,
      allowsDifferentBits,
      workerWaitMs: 1_500,
      environment,
    });
    await lab.startWorker(WORKER);
    await lab.startWorker([...WORKER, ...more]);
    const [request] = [{ ...REQUESTS.first!, maxNewTokens: 200 }];
    const tokens: number[] = [];
    const stop = lab.onFrame(({ worker, index }) => {
      if (index < 5) return;
      stop();
      void lab.kill(lab.find(worker)!);
    });
    const read = (async () => {
      for await (const piece of lab.gateway.submit(lab.model, request!)[0]!) tokens.push(...piece.tokens);
    })();
    if (allowsDifferentBits) {
      await read;
      expect(tokens).toHaveLength(200);
    } else await expect(read).rejects.toThrow(/no equal worker is left .*--allow-different-bits/);
    await lab.close();
  });
});

describeWithNats('clocks and wires of the queue', () => {
  it('may differ by a day, whatever a request has of time limits', async () => {
    const lab = await QueueLab.start({
      nats: testNats!,
      environment: cleanEnvironment({}),
      routing: 'cache',
    });
    for (const hours of [-24, 24]) {
      const shift = `const now = Date.now; Date.now = () => now() + ${hours * 3_600_000};`;
      const options = `--import data:text/javascript,${encodeURIComponent(shift)}`;
      await lab.startWorker(WORKER, lab.nats.url, { NODE_OPTIONS: options });
    }
    const request = { ...REQUESTS.first!, timeLimitMs: 40_000 };
    const undisturbed = await ask(lab.gateway, lab.model, REQUESTS.first!);
    const stop = lab.onFrame(({ worker, index }) => {
      if (index < 5) return;
      stop();
      void lab.kill(lab.find(worker)!);
    });
    expect(await ask(lab.gateway, lab.model, request)).toEqual(undisturbed);
    await lab.close();
  });

  it('may swallow what a gateway hears and says', async () => {
    const lab = await QueueLab.start({
      nats: testNats!,
      environment: cleanEnvironment({}),
      routing: 'cache',
    });
    await lab.startWorker(WORKER);
    await until('the first worker', () => lab.gateway.numWorkersOf(lab.model) === 1);
    const undisturbed = await ask(lab.gateway, lab.model, REQUESTS.several!);
    const proxy = await SwallowingProxy.start(lab.nats.port);
    const cutOff = await lab.openGateway(undefined, proxy.port);
    await until('the worker', () => cutOff.numWorkersOf(lab.model) === 1);
    const stop = lab.onFrame(({ index }) => {
      if (index < 4) return;
      stop();
      proxy.isSwallowing = true;
    });
    const asked = ask(cutOff, lab.model, REQUESTS.several!);
    await until('the wire to be cut', () => proxy.isSwallowing);
    // Its worker gives it up after a while.
    await lab.untilIdle();
    proxy.isSwallowing = false;
    proxy.cut();
    expect(await asked).toEqual(undisturbed);
    cutOff.close();
    proxy.close();
    await lab.close();
  });
});

describeWithNats('a worker whose engine dies', () => {
  it('leaves it to the gateway to go on, with the same answer', async () => {
    const lab = await QueueLab.start({ nats: testNats!, environment: cleanEnvironment({}) });
    try {
      const { child } = await lab.startWorker([...WORKER, '--isolate']);
      const whole = await ask(lab.gateway, lab.model, REQUESTS.first!);
      const attempts = new Set<number>();
      const isEngine = ({ parent, args }: ReturnType<typeof runningProcesses>[number]) =>
        parent === child.pid && args.some((arg) => arg.includes('worker-process'));
      const stop = lab.onFrame(({ attempt, index }) => {
        if (attempts.has(attempt) || index < 4) return;
        attempts.add(attempt);
        const engine = runningProcesses().find(isEngine);
        if (attempts.size === 1 && engine !== undefined) process.kill(engine.pid, 'SIGKILL');
      });
      // A tiny model may be done before the signal takes effect.
      do {
        attempts.clear();
        expect(await ask(lab.gateway, lab.model, REQUESTS.first!)).toEqual(whole);
      } while (!attempts.has(2));
      stop();
    } finally {
      await lab.close();
    }
  });
});
