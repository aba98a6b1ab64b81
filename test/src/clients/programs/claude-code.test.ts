import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testProgram } from '../../support/test-programs.js';
import { type Ended, ProgramHome, type Running } from './run-program.js';
import { call, ENDLESS, MOST_NEW, newBytes, ScriptedServer, sharedBytes } from './scripted-server.js';

const claude = testProgram('claude');

describe.skipIf(claude === null)('Claude Code', () => {
  const server = new ScriptedServer();
  const home = new ProgramHome();

  beforeAll(() => server.start());
  afterAll(async () => {
    home.remove();
    await server.close();
  });

  const start = (prompt: string, model: string, args: readonly string[]): Running =>
    home.start(claude!, ['-p', prompt, '--output-format', 'stream-json', '--verbose', ...args], {
      ...{ ANTHROPIC_BASE_URL: server.url, ANTHROPIC_AUTH_TOKEN: 'none', CLAUDE_CODE_MAX_RETRIES: '0' },
      ...{ ANTHROPIC_MODEL: model, ANTHROPIC_DEFAULT_HAIKU_MODEL: model },
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    });
  const run = (prompt: string, model = 'toy', ...args: string[]): Promise<Ended> =>
    start(prompt, model, args).ended;

  it('gets an answer, and reads its usage', async () => {
    server.says('Geese fly north.');
    const { code, events, output } = await run('Where do geese fly?');
    expect(code, output).toBe(0);
    expect(events.at(-1)).toMatchObject({ type: 'result', is_error: false, result: 'Geese fly north.' });
    const { usage } = events.at(-1) as { usage: { input_tokens: number } };
    expect(usage.input_tokens).toBe(server.requests[0]!.promptTokens.length);
    expect(server.promptOf(0)).toContain('Where do geese fly?');
  });

  it('streams it piece by piece', async () => {
    server.says('Geese fly north.');
    const { events, output } = await run('Where?', 'toy', '--include-partial-messages');
    const deltas = events.flatMap((event) => {
      const { delta } = (event.event ?? {}) as { delta?: { type: string; text: string } };
      return delta?.type === 'text_delta' ? [delta.text] : [];
    });
    expect(deltas.join(''), output).toBe('Geese fly north.');
    expect(deltas.length).toBeGreaterThan(2);
  });

  it('calls its tools, and sends what they return', async () => {
    const file = join(home.path, 'goose.txt');
    writeFileSync(file, 'goose-42\n');
    server.says(call('Read', { file_path: file }), 'It is goose-42.');
    const { code, events, output } = await run('Count.', 'toy', '--tools', 'Read', '--allowedTools', 'Read');
    expect(code, output).toBe(0);
    expect(server.requests).toHaveLength(2);
    expect(server.promptOf(1)).toContain('goose-42');
    expect(events.at(-1)).toMatchObject({ result: 'It is goose-42.', num_turns: 2 });
  });

  it('begins each turn with the whole of the one before, and a new session with its instructions', async () => {
    const file = join(home.path, 'goose.txt');
    writeFileSync(file, 'goose-42\n');
    const args = ['--tools', 'Read,Bash', '--allowedTools', 'Read,Bash'];
    const bash = call('Bash', { command: 'echo honk' });
    server.says(call('Read', { file_path: file }), bash, 'It is goose-42.', 'Two.', 'Three.');
    await run('Count.', 'toy', ...args);
    await run('And now?', 'toy', '--continue', ...args);
    await run('Another one.', 'toy', ...args);
    const prompts = server.requests.map((_, i) => server.promptOf(i));
    expect(prompts).toHaveLength(5);
    for (let turn = 1; turn < 4; turn++) {
      expect(newBytes(prompts[turn - 1]!, prompts[turn]!), `turn ${turn}`).toBeLessThan(MOST_NEW);
    }
    expect(sharedBytes(prompts[0]!, prompts[4]!)).toBeGreaterThan(prompts[4]!.indexOf('<user>'));
  });

  it('gets an answer of the form that it asks for', async () => {
    const properties = { age: { type: 'integer' } };
    const schema = { type: 'object', properties, required: ['age'], additionalProperties: false };
    server.says(call('StructuredOutput', { age: 7 }), 'Done.');
    const { code, events, output } = await run('An age.', 'toy', '--json-schema', JSON.stringify(schema));
    expect(code, output).toBe(0);
    expect(events.at(-1)).toMatchObject({ type: 'result', structured_output: { age: 7 } });
  });

  it('tells what the server refuses', async () => {
    server.says();
    const { code, events, output } = await run('Hi.', 'gpt-4');
    expect(code, output).not.toBe(0);
    expect(events.at(-1)).toMatchObject({ type: 'result', is_error: true });
    expect(output).toMatch(/gpt-4/);
    expect(server.requests).toHaveLength(0);
  });

  it('is ended in the middle of a stream, and nothing is left of its request', async () => {
    server.says(ENDLESS);
    const { child, ended } = start('A story.', 'toy', []);
    await expect.poll(() => server.toy.engine.active).toBe(1);
    child.kill('SIGTERM');
    await ended;
    await expect.poll(() => server.toy.engine.cancelled).toBe(1);
    expect(server.toy.engine.active).toBe(0);
  });
});
