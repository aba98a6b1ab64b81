import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { Json } from '../../../tools/faults/client/fold.js';
import { Conductor } from '../../../tools/faults/conductor.js';
import type { Fleet, Member } from '../../../tools/faults/fleet/fleet.js';
import { runOptions } from '../../../tools/faults/options.js';
import { reportLines, reproductions } from '../../../tools/faults/report.js';
import { dialogue, single } from '../../../tools/faults/requests/script.js';
import { runFaults } from '../../../tools/faults/run-faults.js';

/** A member that notes what is done to it. */
class FakeMember implements Member {
  readonly wire = null;
  readonly clock = null;
  sentBytes = 0;
  readonly done: string[] = [];
  constructor(
    readonly name: string,
    readonly role: Member['role'],
  ) {}
  signal(signal: string) {
    this.done.push(signal);
  }
  async end(signal: string) {
    this.done.push(signal);
  }
  async start() {
    this.done.push('start');
  }
  async succeed() {
    this.done.push('succeed');
  }
  erase() {
    this.done.push('erase');
  }
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

/** A fleet of one address; each request is answered by the next of these. */
async function fleetOf(answers: readonly RequestListener[], members: readonly Member[] = []): Promise<Fleet> {
  let turn = 0;
  const server = createServer((...call) => answers[Math.min(turn++, answers.length - 1)]!(...call));
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return {
    members,
    numErasures: 0,
    addresses: () => [`http://127.0.0.1:${port}`],
    excuse: ({ kind, status, isToRetry }) =>
      kind === 'broken' ? 'lost' : status === 503 && isToRetry ? '503' : null,
    leftovers: async () => [],
    close: async () => {},
  };
}

const frame = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const stream =
  (...frames: string[]): RequestListener =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(frames.join(''));
  };
const broken =
  (...frames: string[]): RequestListener =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(frames.join(''), () => response.destroy());
  };
const refused =
  (status: number, headers: Record<string, string> = {}): RequestListener =>
  (_, response) => {
    response.writeHead(status, headers).end('no');
  };

const DONE = 'data: [DONE]\n\n';
const WHOLE = stream(frame('a'), frame('b'), DONE);
const EXPECTED: Json = { choices: [{ index: 0, delta: { content: 'ab' } }] };

const ask = async (answers: readonly RequestListener[], members: readonly Member[] = [], at = '') => {
  const fleet = await fleetOf(answers, members);
  return runFaults({
    fleet,
    requests: [{ index: 4, kind: 'chat', script: single('/', { stream: true }) }],
    expected: [{ answer: EXPECTED, numTokens: 2 }],
    plan: at === '' ? [] : [{ kind: at, at: 1, seed: 3 }],
    concurrency: 1,
  });
};

describe('a request of a run', () => {
  it('is right if its answer is whole and equal, at once or asked again', async () => {
    const { wrong, retries } = await ask([broken(frame('a')), refused(503, { 'retry-after': '1' }), WHOLE]);
    expect(wrong).toEqual([]);
    expect(retries).toEqual({ lost: 1, 503: 1 });
  });

  it.each([
    ['another', [stream(frame('a'), frame('c'), DONE)], /content is "ac" in place of "ab"/],
    ['given twice', [stream(frame('a'), frame('b'), frame('b'), DONE)], /content is "abb"/],
    [
      'longer than its end',
      [stream(frame('a'), DONE, frame('b'))],
      /^POST \/ is wrong: more came after the end/,
    ],
    ['refused without a reason', [refused(500)], /^POST \/ is refused with 500: no/],
    ['refused without Retry-After', [refused(503)], /^POST \/ is refused with 503/],
    ['broken at something else', [broken(frame('b')), WHOLE], /^the beginning.*"b" in place of "ab"/],
  ] as [string, RequestListener[], RegExp][])('is wrong if its answer is %s', async (_, answers, what) => {
    const { wrong } = await ask([...answers, refused(404)]);
    expect(wrong).toHaveLength(1);
    expect(wrong[0]).toMatchObject({ index: 4, kind: 'chat', what: expect.stringMatching(what) });
  });

  it('begins again with what it keeps if the store is erased meanwhile, and not else', async () => {
    for (const isErased of [true, false]) {
      const answers = [WHOLE, refused(404), WHOLE, WHOLE];
      const fleet = { ...(await fleetOf(answers)), numErasures: 0 };
      const script = dialogue({}, async (ask) => {
        await ask({ method: 'GET', path: '/' });
        if (isErased && fleet.numErasures === 0) fleet.numErasures = 1;
        return ask({ method: 'GET', path: '/' });
      });
      const { wrong, retries } = await runFaults({
        fleet,
        requests: [{ index: 0, kind: 'batch', script }],
        expected: [{ answer: EXPECTED, numTokens: 2 }],
        plan: [],
        concurrency: 1,
      });
      const late = /^GET \/ is refused with 404: no \(found \d+ ms later\)$/;
      expect(wrong.map(({ what }) => what)).toEqual(isErased ? [] : [expect.stringMatching(late)]);
      expect(retries).toEqual(isErased ? { 'what it had stored was erased': 1 } : {});
    }
  });

  it('is told with the faults that were meanwhile, and with a command that shows it alone', async () => {
    const worker = new FakeMember('worker-0', 'worker');
    const report = await ask([stream(frame('a'), frame('x'), DONE)], [worker], 'kill');
    expect(worker.done).toEqual(['SIGKILL', 'start']);
    expect(reportLines(report).join('\n')).toMatch(
      /^WRONG request 4 \(chat\).*\n1 requests, 2 tokens, 1 faults/,
    );
    const options = runOptions({ seed: '9', requests: '5', kills: '1' });
    expect(reproductions(report, options)).toEqual([
      'Alone: npm run faults -- --seed 9 --requests 5 --only 4 --kills 1 --at kill@1/3',
    ]);
  });
});

describe('faults of a plan', () => {
  const members = () => [
    new FakeMember('a', 'worker'),
    new FakeMember('b', 'worker'),
    new FakeMember('n', 'nats'),
  ];

  it('begin when their tokens have come, and those that last end with the run', async () => {
    const [a, b, n] = members();
    const fleet = await fleetOf([WHOLE], [a!, b!, n!]);
    const conductor = new Conductor(
      [
        { kind: 'erase', at: 10, seed: 1 },
        { kind: 'stop', at: 20, seed: 1 },
      ],
      fleet,
    );
    conductor.advance(9);
    expect(conductor.begun).toEqual([]);
    conductor.advance(15);
    expect(conductor.begun.map(({ kind, victims }) => [kind, victims])).toEqual([['erase', ['n']]]);
    conductor.advance(20);
    expect(conductor.numDue).toBe(0);
    await conductor.settle();
    expect(n!.done).toEqual(['SIGKILL', 'erase', 'start']);
    expect([...a!.done, ...b!.done]).toEqual(['SIGSTOP', 'SIGCONT']);
    for (const { begin, end } of conductor.begun) expect(end).toBeGreaterThanOrEqual(begin);
  });

  it('never strike a member twice at a time, and wait for one that is free', async () => {
    const [a] = members();
    const conductor = new Conductor(
      [
        { kind: 'stop', at: 0, seed: 1 },
        { kind: 'kill', at: 0, seed: 2 },
      ],
      await fleetOf([WHOLE], [a!]),
    );
    conductor.advance(1);
    expect([conductor.numDue, a!.done]).toEqual([1, ['SIGSTOP']]);
    await conductor.settle();
    conductor.advance(2);
    await conductor.settle();
    expect([conductor.numDue, a!.done]).toEqual([0, ['SIGSTOP', 'SIGCONT', 'SIGKILL', 'start']]);
  });
});
