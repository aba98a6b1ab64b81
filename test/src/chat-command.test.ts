import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { CTRL_C, CTRL_D, runInTerminal, type Terminal } from './support/pty.js';
import { testCacheDir } from './support/skein-process.js';
import { listen, say, type ToyServer, toyServer } from './support/toy-server.js';
import { warmCli } from './support/warm-cli.js';

const runCli = warmCli();

let toy: ToyServer;
let url: string;
let close: () => Promise<void>;
const folder = temporaryFolder('skein-chat');

/** The conversation as the toy's template writes it: <role>text</> ... <assistant>. */
const promptOf = (tokens: Iterable<number>) =>
  Buffer.from(Array.from(tokens).filter((token) => token < 256)).toString();
const prompts = () => toy.engine.requests.map(({ promptTokens }) => promptOf(promptTokens));

beforeAll(async () => {
  toy = toyServer(({ promptTokens }) => {
    const last = /<user>([^<]*)<\/><assistant>$/.exec(promptOf(promptTokens))?.[1] ?? '';
    if (last.includes('for ever')) return [...say('on and on').slice(0, -1), { waitMs: 600_000 }];
    return say(`[${last.replaceAll('\n', '|')}]`);
  });
  ({ url, close } = await listen(toy));
});
afterAll(() => close());

let chats = 0;
/** A chat in a terminal, with a state folder of its own or a given one. */
function chat(args: string[] = [], state = join(folder, `state-${++chats}`), columns = 80): Terminal {
  return runInTerminal(['chat', '--url', url, ...args], { columns, environment: { SKEIN_STATE_DIR: state } });
}
const piped = (input: string, ...args: string[]) => runCli(['chat', '--url', url, ...args], { input });

describe('skein chat without a terminal', () => {
  it('answers line by line, remembers the conversation, and obeys commands', async () => {
    const before = prompts().length;
    const saved = join(folder, 'chat.json');
    const lines = [
      'one',
      'two \\',
      'lines',
      '"""three',
      '  four"""',
      `/save ${saved}`,
      '/reset',
      '/system Be brief',
      '/set temperature 0.5',
      '//etc',
      '/retry',
      `/load ${saved}`,
      'five',
    ];
    const { code, stdout, stderr } = await piped(`${lines.join('\n')}\n`);
    expect(stdout).toBe('[one]\n[two |lines]\n[three|  four]\n[/etc]\n[/etc]\n[five]\n');
    expect(stderr).toContain(`saved in ${saved}\na new conversation\nsystem: Be brief\ntemperature 0.5\n`);
    expect(stderr).toContain(`6 messages from ${saved}\nassistant: [three|  four]\n`);
    expect(code).toBe(0);
    const first = '<user>one</><assistant>[one]</><user>two \nlines</><assistant>[two |lines]</>';
    expect(prompts().slice(before)).toEqual([
      '<user>one</><assistant>',
      '<user>one</><assistant>[one]</><user>two \nlines</><assistant>',
      `${first}<user>three\n  four</><assistant>`,
      '<system>Be brief</><user>/etc</><assistant>',
      '<system>Be brief</><user>/etc</><assistant>',
      `${first}<user>three\n  four</><assistant>[three|  four]</><user>five</><assistant>`,
    ]);
    expect(statSync(saved).mode & 0o777).toBe(0o600);
  });

  it('tells what is wrong, goes on, and ends with 1', async () => {
    const own = join(folder, 'mine.txt');
    writeFileSync(own, 'mine');
    const lines = [
      '/rest',
      '/set heat 3',
      '/set temperature 3',
      '/retry',
      '/load /nowhere',
      `/load ${own}`,
      `/save ${own}`,
      '/save /nowhere/chat',
      '/save',
      'still here',
    ];
    const { code, stdout, stderr } = await piped(`${lines.join('\n')}\n`);
    expect(stderr.trimEnd().split('\n')).toEqual([
      'There is no /rest; did you mean /reset?',
      expect.stringMatching(/^There is no setting heat; settings: temperature, top-p/),
      'temperature is "3"; it must be a number from 0 to 2.',
      'There is no answer yet to ask for once more.',
      '/nowhere cannot be read: there is no such file.',
      `${own} is no saved chat of /save.`,
      `${own} is there, and no saved chat; name another file.`,
      expect.stringMatching(/^\/nowhere\/chat cannot be written: /),
      '/save needs the name of a file.',
    ]);
    expect(stdout).toBe('[still here]\n');
    expect(readFileSync(own, 'utf8')).toBe('mine');
    expect(code).toBe(1);
  });

  it('forgets the oldest where the context is full, and tells it', async () => {
    const before = prompts().length;
    const { stdout, stderr, code } = await piped(
      `${'a'.repeat(70)}\n${'b'.repeat(50)}\nc\n`,
      '--max-tokens',
      '80',
    );
    expect(stdout.split('\n').slice(0, 3)).toEqual([`[${'a'.repeat(70)}]`, `[${'b'.repeat(50)}]`, '[c]']);
    expect(stderr).toMatch(/the oldest of this conversation is forgotten/);
    expect(prompts().slice(before).at(-1)).not.toContain('aaa');
    expect(code).toBe(0);
  });

  it('answers with the model in the box', async () => {
    const { code, stdout } = await runCli(['chat', '--max-tokens', '12', '--temperature', '0'], {
      input: 'hello\nTell me a story about a fox\n',
      environment: { SKEIN_CACHE_DIR: testCacheDir },
    });
    expect(stdout).toMatch(/^Hello!.*\nOnce .*\n$/);
    expect(code).toBe(0);
  });
});

describe('skein chat in a terminal', () => {
  it('asks what is typed, and a paste as one message; Ctrl-C stops an answer, Ctrl-D leaves', async () => {
    const terminal = chat();
    await terminal.waitFor('>>> ');
    terminal.type('hello\r');
    await terminal.waitFor('[hello]');
    await terminal.waitFor('>>> ');
    terminal.type('\x1b[200~pasted\rin\ttwo\x1b[201~ and typed\r');
    await terminal.waitFor('[pasted|in\ttwo and typed]');
    await terminal.waitFor('>>> ');
    const { cancelled } = toy.engine;
    terminal.type('for ever\r');
    await terminal.waitFor('on and on');
    terminal.type(CTRL_C);
    await terminal.waitFor('>>> ');
    await expect.poll(() => toy.engine.cancelled).toBe(cancelled + 1);
    terminal.type('"""\r');
    await terminal.waitFor('... ');
    terminal.type('x\ry"""\r');
    await terminal.waitFor('[x|y]');
    expect(prompts().at(-1)).toContain('<user>for ever</><assistant>on and on</>');
    await terminal.waitFor('>>> ');
    terminal.type(CTRL_D);
    expect(await terminal.ended).toBe(0);
    // The terminal is as it was: bracketed paste is off.
    expect(terminal.shown().lastIndexOf('\x1b[?2004l')).toBeGreaterThan(
      terminal.shown().lastIndexOf('\x1b[?2004h'),
    );
  });

  it('Ctrl-C at the prompt drops what was begun, and leaves when it comes twice', async () => {
    const terminal = chat();
    await terminal.waitFor('>>> ');
    terminal.type(`half a line${CTRL_C}`);
    await terminal.waitFor(/\n.*>>> /);
    terminal.type('whole\r');
    await terminal.waitFor('[whole]');
    await terminal.waitFor('>>> ');
    terminal.type(CTRL_C);
    await terminal.waitFor('once more, or Ctrl-D, to leave');
    await terminal.waitFor('>>> ');
    terminal.type(CTRL_C);
    expect(await terminal.ended).toBe(0);
    expect(prompts().at(-1)).toBe('<user>whole</><assistant>');
  });

  it('remembers what was typed for the next chat, for its user alone; not with --no-history', async () => {
    const state = join(folder, 'kept');
    const one = chat([], state);
    await one.waitFor('>>> ');
    one.type('"""\r');
    await one.waitFor('... ');
    one.type('a\rb"""\r');
    await one.waitFor('[a|b]');
    await one.waitFor('>>> ');
    one.type('last\r');
    await one.waitFor('[last]');
    await one.waitFor('>>> ');
    one.type(CTRL_D);
    await one.ended;
    const file = join(state, 'chat-history.jsonl');
    expect(readFileSync(file, 'utf8')).toBe('"a\\nb"\n"last"\n');
    expect([statSync(file).mode & 0o777, statSync(state).mode & 0o777]).toEqual([0o600, 0o700]);
    chmodSync(file, 0o644);

    const two = chat(['--no-history'], state);
    await two.waitFor('>>> ');
    two.type('\x1b[Asecret\r');
    await two.waitFor('[secret]');
    await two.waitFor('>>> ');
    two.type(CTRL_D);
    await two.ended;

    const three = chat([], state, 20);
    await three.waitFor('>>> ');
    three.type('\x1b[A\x1b[A\r');
    await three.waitFor('[a|b]');
    await three.waitFor('>>> ');
    three.type('new\r');
    await three.waitFor('[new]');
    await three.waitFor('>>> ');
    three.type('\x1b[A\r');
    await three.waitFor('[new]');
    await three.waitFor('>>> ');
    three.kill(15);
    expect(await three.ended).toBe(143);
    expect(readFileSync(file, 'utf8')).toBe('"a\\nb"\n"last"\n"a\\nb"\n"new"\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });
});
