import { afterEach, describe, expect, it } from 'vitest';
import { type Answer, FakeLlm, goodChat } from '../loadgen/support/fake-llm.js';
import { runInTerminal } from './support/pty.js';

let server: FakeLlm | null = null;
afterEach(async () => {
  await server?.close();
  server = null;
});

const ESC = String.fromCharCode(27);
const ESCAPES = new RegExp(`${ESC}\\[[\\d;?]*[a-zA-Z]`, 'g');
/** Up over the block's four lines, everything below goes, and it is drawn again, with more in its plots. */
const DRAWN_AGAIN = new RegExp(
  `${ESC}\\[4A${ESC}\\[0J[\\s\\S]*pieces/s[\\s\\S]*[▁▂▃▄▅▆▇█]{3,}[\\s\\S]*requests/s[\\s\\S]*[▁▂▃▄▅▆▇█]{3,}`,
);

describe('skein bench in a terminal', () => {
  it('draws plots over themselves while it runs, and leaves the summary', async () => {
    const slowly: Answer = (asked, response, number) =>
      new Promise((resolve) => setTimeout(() => resolve(goodChat(asked, response, number)), 40));
    server = await FakeLlm.start(slowly);
    const terminal = runInTerminal(
      [
        'bench',
        server.url,
        '--concurrency',
        '2',
        '--duration',
        '5',
        '--output-tokens',
        '20',
        '--warmup',
        '0',
      ],
      { columns: 120 },
    );
    const first = await terminal.waitFor(/TTFT .* E2E .*\(p50 \/ p99\)/);
    expect(first.replace(ESCAPES, '')).toMatch(
      /concurrency 2 {2}\d+ s {3}\d+ of \d+ dealt {3}[012] in flight/,
    );
    const later = await terminal.waitFor(DRAWN_AGAIN);
    expect(later).toContain('TTFT');
    await terminal.waitFor(/\d+ requests: .*completed in/);
    expect(await terminal.ended).toBe(0);
    // Nothing of the live view stands after the last line that was taken away.
    const rest = terminal.shown().split(`${ESC}[0J`).at(-1)!.replace(ESCAPES, '');
    expect(rest).not.toContain('in flight');
    expect(rest).toContain('sent behind schedule');
  });

  it('asks before it loads another machine: no sends nothing, yes does', async () => {
    const refused = runInTerminal(['bench', 'http://skein.invalid:8000']);
    await refused.waitFor('skein.invalid:8000 is not this machine. Load it? [y/N] ');
    refused.type('\r');
    await refused.waitFor('Nothing was sent.');
    expect(await refused.ended).toBe(1);
    const meant = runInTerminal(['bench', 'http://skein.invalid:8000']);
    await meant.waitFor('[y/N] ');
    meant.type('y\r');
    await meant.waitFor(/http:\/\/skein\.invalid:8000\/v1\/models does not answer/);
    expect(await meant.ended).toBe(1);
  });

  it('--yes does not ask, and --quiet draws nothing', async () => {
    server = await FakeLlm.start(goodChat);
    const sure = runInTerminal(['bench', 'http://skein.invalid:8000', '--yes']);
    const quiet = runInTerminal(['bench', server.url, '--requests', '4', '--quiet']);
    expect([await sure.ended, await quiet.ended]).toEqual([1, 0]);
    expect(sure.shown()).not.toContain('[y/N]');
    expect(sure.shown()).toContain('does not answer');
    expect(quiet.shown()).toContain('4 requests: 4 completed');
    expect(quiet.shown()).not.toContain(`${ESC}[0J`);
  });
});
