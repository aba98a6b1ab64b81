import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Formation, FormationListener } from '../../callbacks/formation.js';
import { ApiKeys } from '../../src/server/web/access/api-keys.js';
import { temporaryFolder } from '../support/fresh-folders.js';
import { CTRL_C, runInTerminal } from './support/pty.js';
import { listen, say, toyServer } from './support/toy-server.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

const folder = temporaryFolder('skein-top');
const RESTORED = '\x1b[?7h\x1b[?25h\x1b[?1049l';

const FORMATION = {
  v: 1,
  timeMs: 1_700_000_000_000,
  iteration: 3,
  requests: [[5, 'mine', 2, 100, 20, 20, 20, 7, 64, 3, 0, 0, 1, 2]],
  queued: 0,
  ended: [],
  blocks: { count: 10, tokensPerBlock: 32, runs: [3, 0, 7, -1] },
} as unknown as Formation;

/** A server whose engine always has the same in flight. */
function server(apiKeys = new ApiKeys([])) {
  const watchFormation = (listener: FormationListener) => {
    const timer = setInterval(() => listener(FORMATION), 50);
    return () => clearInterval(timer);
  };
  const statsJson = () => '{"Iteration Counter":3,"Max Request Count":64}';
  return toyServer(() => say(''), {
    apiKeys,
    model: { watch: { onStats: () => () => {}, statsJson, watchFormation } },
  });
}

describe('skein top', () => {
  it('prints a picture, or JSON, of what is in flight, for scripts', async () => {
    const { url, close } = await listen(server());
    const [text, json] = await Promise.all([
      runCli(['top', url, '--once']),
      runCli(['top', `${url}/v1/`, '--once', '--json', '--model', 'toy']),
    ]);
    await close();
    expect(text.stdout).toMatch(/^skein top {2}toy {2}http.*\n.*batch 1 of 64.*\nKV █+░+ 30 % used/);
    expect(text.stdout).toMatch(/\n 5 {2}generation .* 7\/64 .* mine\n$/);
    expect(JSON.parse(json.stdout)).toMatchObject({ model: 'toy', requests: [{ id: 5, label: 'mine' }] });
    expect([text.code, text.stderr, json.code, json.stderr]).toEqual([0, '', 0, '']);
  });

  it('draws in the alternate screen, waits for a server that is away, and leaves the terminal as it was', async () => {
    const first = await listen(server());
    const { port } = new URL(first.url);
    const terminal = runInTerminal(['top', first.url], { columns: 90, rows: 12 });
    expect((await terminal.waitFor('mine')).startsWith('\x1b[?1049h\x1b[?25l')).toBe(true);
    terminal.resize(6, 30);
    await terminal.waitFor('…');
    terminal.resize(12, 90);
    await first.close();
    await terminal.waitFor('away: ');
    const again = createServer((incoming, outgoing) => {
      const isStream = incoming.url!.startsWith('/stats/stream');
      outgoing.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json');
      const back = { ...FORMATION, model: 'toy', requests: [[6, 'back', 2, 1]] };
      if (isStream) outgoing.write(`event: formation\ndata: ${JSON.stringify(back)}\n\n`);
      else outgoing.end('{"model":"toy","Iteration Counter":1}');
    }).listen(Number(port), '127.0.0.1');
    await terminal.waitFor('back');
    terminal.type(CTRL_C);
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown().endsWith(RESTORED)).toBe(true);
    again.closeAllConnections();
    again.close();
  });

  it('leaves the terminal as it was after a signal and after a crash, whose reason is seen', async () => {
    const { url, close } = await listen(server());
    const killed = runInTerminal(['top', url]);
    const path = join(folder, 'crash');
    const crash = `
      import { existsSync } from 'node:fs';
      setInterval(() => { if (existsSync(${JSON.stringify(path)})) throw new Error('boom'); }, 20);`;
    const crashed = runInTerminal(['top', url], {
      environment: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(crash)}` },
    });
    await killed.waitFor('mine');
    killed.kill(15);
    expect(await killed.ended).toBe(143);
    expect(killed.shown()).toContain(RESTORED);
    await crashed.waitFor('mine');
    writeFileSync(path, '');
    expect(await crashed.ended).not.toBe(0);
    const [, behind] = crashed.shown().split(RESTORED);
    expect(behind).toContain('boom');
    await close();
  });

  it('says what is wrong with an address, a server and a key, in a sentence', async () => {
    const { url, close } = await listen(server(new ApiKeys([{ name: 'a', key: 'sk', weight: 1 }])));
    const page = createServer((_, outgoing) => outgoing.end('<h1>Hello</h1>')).listen(0, '127.0.0.1');
    await once(page, 'listening');
    const other = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
    const gone = await listen(server());
    await gone.close();
    const cases: [string[], RegExp, number][] = [
      [[gone.url], /cannot be reached: nothing listens there; is the server running\.$/, 1],
      [[other], /answers, but is no Skein server: it shows no statistics at \/stats\.$/, 1],
      [[url], /wants an API key that it knows \(--api-key, or SKEIN_API_KEY\)\.$/, 1],
      [[url, '--api-key', 'sk', '--model', 'gpt'], /gpt.*toy/, 1],
      [['nowhere'], /The address is "nowhere"; it must be an address such as http:/, 2],
    ];
    const ended = await Promise.all(cases.map(([args]) => runCli(['top', ...args, '--once'])));
    for (const [index, { code, stdout, stderr }] of ended.entries()) {
      expect(stderr.trimEnd()).toMatch(cases[index]![1]);
      expect(stderr).toMatch(/^skein: [^\n]+\n$/);
      expect([code, stdout]).toEqual([cases[index]![2], '']);
    }
    const piped = await runCli(['top', url]);
    expect(piped.stderr).toBe(
      'skein: skein top draws on a terminal, and stdout is none; --once or --json is for a pipe.\n',
    );
    expect(piped.code).toBe(2);
    await close();
    page.close();
  });
});
