import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/fresh-folders.js';
import { CTRL_C, CTRL_D, runInTerminal, type Terminal } from './support/pty.js';
import { testCacheDir } from './support/skein-process.js';
import { listen, say, type ToyServer, toyModel, toyServer } from './support/toy-server.js';
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
  toy.models.add(toyModel(toy.engine, { id: 'other' }));
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
    expect(stderr).toMatch(/the oldest of this conversation is forgotten \(\d question/);
    expect(prompts().slice(before).at(-1)).not.toContain('aaa');
    expect(code).toBe(0);
  });

  it('lists models, goes on with another one, and keeps the one it has where that is not there', async () => {
    const lines = ['/model', '/model othre', 'one', '/model other', 'two', '/model'];
    const { code, stdout, stderr } = await piped(`${lines.join('\n')}\n`);
    expect(stdout).toBe('[one]\n[two]\n');
    expect(stderr.trimEnd().split('\n')).toEqual([
      '* toy',
      '  other',
      'The server has no model othre; did you mean other?',
      `other at ${url}`,
      '* other',
      '  toy',
    ]);
    expect(code).toBe(1);
  });

  it('goes on with another model that is loaded here', async () => {
    const { stdout, stderr, code } = await runCli(['chat', '--max-tokens', '3', '--temperature', '0'], {
      input: 'hello\n/model /nowhere\n/model gosling\nhello\n',
      environment: { SKEIN_CACHE_DIR: testCacheDir },
    });
    const [first, second] = stdout.split('\n');
    expect(second).toBe(first);
    expect(stderr).toMatch(/nowhere.*\n(?:.*\n)*gosling: weights/);
    expect(code).toBe(1);
  });

  it('runs functions of a file, which can be turned off', async () => {
    const file = join(folder, 'tools.mjs');
    writeFileSync(file, "export const now = { description: 'Time', execute: () => 'noon' };\n");
    const call = '<tool_call>{"name": "now", "arguments": {}}</tool_call>';
    const answers = [call, 'It gives noon', 'It is off', call, 'And again'];
    const wide = toyServer(() => say(answers.shift()!), { model: { maxSeqLen: 4000, maxInputLen: 4000 } });
    const { url: there, close: end } = await listen(wide);
    const lines = ['/tools', 'one', '/tools off', 'two', '/tools nwo', '/tools now', 'three'];
    const input = `${lines.join('\n')}\n`;
    const { code, stdout, stderr } = await runCli(['chat', '--url', there, '--tools', file], { input });
    await end();
    expect(stdout).toBe('It gives noon\nIt is off\nAnd again\n');
    expect(stderr.trimEnd().split('\n')).toEqual([
      'on   now  Time',
      'now({}) gives noon',
      'off  now  Time',
      'There is no function nwo; did you mean now?',
      'on   now  Time',
      'now({}) gives noon',
    ]);
    const asked = wide.engine.requests.map(({ promptTokens }) => promptOf(promptTokens));
    expect(asked.map((prompt) => prompt.includes('"description":"Time"'))).toEqual([
      true,
      true,
      false,
      true,
      true,
    ]);
    expect(asked[1]).toMatch(/noon/);
    expect(code).toBe(1);
  });

  it.each([
    ['export default 1;', /exports is not taken: tools\.default: .*; it was given 1\./],
    ['', /exports nothing; functions are exported by their names/],
    ['export const a = { description: "b" };', /The function a of --tools has no execute\./],
    ['export const a = ;', /cannot be imported: /],
  ])('refuses functions such as %j', async (source, message) => {
    const file = join(folder, `wrong-${++chats}.mjs`);
    writeFileSync(file, source);
    const { code, stderr } = await piped('hello\n', '--tools', file);
    expect(stderr).toMatch(/^skein: [^\n]+\n$/);
    expect(stderr).toMatch(message);
    expect(code).toBe(2);
  });

  it('keeps nothing, lists what is kept, and goes on with it where that is asked for', async () => {
    const environment = { SKEIN_STATE_DIR: join(folder, 'piped') };
    const run = (input: string, ...args: string[]) => runCli(['chat', ...args], { input, environment });
    await run('hello\n', '--url', url);
    expect(await run('', '--list')).toMatchObject({ code: 0, stdout: '', stderr: 'no chats are kept yet\n' });
    const none = await run('hello\n', '--url', url, '--resume');
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(none.stderr).toMatch(
      /^skein: No chat is kept in .*\/piped\/chats yet, so there is none to resume\.\n$/,
    );
    expect((await run('/chats\n', '--url', url)).stderr).toMatch(/^This chat keeps nothing: /);
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
    await terminal.waitFor('[pasted|in two and typed]');
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

  it('keeps conversations for their user alone, and goes on with them and their model', async () => {
    const state = join(folder, 'conversations');
    const one = chat(['--model', 'other', '--temperature', '0.5'], state);
    await one.waitFor('>>> ');
    one.type('**one**\r');
    await one.waitFor('[\x1b[1mone\x1b[22m]');
    await one.waitFor('>>> ');
    one.type(CTRL_D);
    const [, id] = /kept: skein chat --resume (\w+)/.exec(await one.waitFor(/--resume \w{5}/))!;
    expect(await one.ended).toBe(0);
    const file = join(state, 'chats', `${id}.json`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const environment = { SKEIN_STATE_DIR: state };
    const listed = await runCli(['chat', '--list'], { environment });
    expect(listed.stdout).toMatch(new RegExp(`^${id}  .*  other    1  \\*\\*one\\*\\*\\n$`));
    // Neither --url nor --model: the chat has them.
    const piped = await runCli(['chat', '--resume', id!], { environment, input: 'two\n/chats\n' });
    expect(piped.stdout).toBe('[two]\n');
    expect(piped.stderr).toMatch(
      new RegExp(`^2 messages from the chat that is kept\nassistant: \\[.*\n${id} .* 2  `),
    );
    expect(toy.engine.requests.at(-1)).toMatchObject({ temperature: 0.5 });
    expect(prompts().at(-1)).toContain('<user>**one**</><assistant>[**one**]</><user>two</>');
    const three = chat(['--no-history', '--resume'], state);
    await three.waitFor('>>> ');
    three.type(`/reset\r`);
    await three.waitFor('>>> ');
    three.type(`/resume ${id}\r`);
    await three.waitFor('This chat keeps nothing');
    three.type(CTRL_D);
    await three.ended;
    const four = chat([], state);
    await four.waitFor('>>> ');
    four.type(`/resume\r`);
    await four.waitFor('4 messages from chat');
    await four.waitFor('>>> ');
    four.type(`/forget ${id}\r`);
    await four.waitFor('is deleted');
    await four.waitFor('>>> ');
    four.type(CTRL_D);
    await four.ended;
    expect(existsSync(file)).toBe(false);
  });

  it('shows answers as they are written with --no-markdown, and with NO_COLOR', async () => {
    for (const [args, environment] of [
      [['--no-markdown'], {}],
      [[], { NO_COLOR: '1' }],
    ] as const) {
      const terminal = runInTerminal(['chat', '--url', url, '--no-history', ...args], { environment });
      await terminal.waitFor('>>> ');
      terminal.type('**one**\r');
      await terminal.waitFor('[**one**]');
      await terminal.waitFor('>>> ');
      terminal.type(CTRL_D);
      await terminal.ended;
    }
  });
});
