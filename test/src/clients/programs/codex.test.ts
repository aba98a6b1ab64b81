import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testProgram } from '../../support/test-programs.js';
import { type Ended, ProgramHome, type Running } from './run-program.js';
import { call, ENDLESS, MOST_NEW, newBytes, ScriptedServer } from './scripted-server.js';

const codex = testProgram('codex');

describe.skipIf(codex === null)('Codex', () => {
  const server = new ScriptedServer();
  const home = new ProgramHome();

  beforeAll(() => server.start());
  afterAll(async () => {
    home.remove();
    await server.close();
  });

  const start = (prompt: string, model: string, args: readonly string[]): Running => {
    const provider = `{name="Skein",base_url="${server.url}/v1",wire_api="responses",request_max_retries=0,stream_max_retries=0}`;
    const settings = [`model="${model}"`, 'model_provider="skein"', `model_providers.skein=${provider}`];
    const always = [
      '--json',
      '--ephemeral',
      '--skip-git-repo-check',
      '--dangerously-bypass-approvals-and-sandbox',
    ];
    return home.start(codex!, [
      'exec',
      ...always,
      ...settings.flatMap((setting) => ['-c', setting]),
      ...args,
      prompt,
    ]);
  };
  const run = (prompt: string, model = 'toy', ...args: string[]): Promise<Ended> =>
    start(prompt, model, args).ended;

  it('streams an answer, and reads its usage', async () => {
    server.says('Geese fly north.');
    const { code, events, output } = await run('Where do geese fly?');
    expect(code, output).toBe(0);
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'item.completed',
        item: expect.objectContaining({ type: 'agent_message', text: 'Geese fly north.' }),
      }),
    );
    const { usage } = events.at(-1) as { usage: { input_tokens: number; output_tokens: number } };
    expect(usage.input_tokens).toBe(server.requests[0]!.promptTokens.length);
    expect(usage.output_tokens).toBeGreaterThanOrEqual('Geese fly north.'.length);
    expect(server.requests).toHaveLength(1);
    expect(server.promptOf(0)).toContain('<user>Where do geese fly?</>');
  });

  it('begins each turn with the whole of the one before', async () => {
    const echo = (text: string) => call('exec_command', { cmd: `echo ${text}` });
    server.says(echo('honk'), echo('hiss'), 'Done.');
    await run('Count.');
    const prompts = server.requests.map((_, i) => server.promptOf(i));
    expect(prompts).toHaveLength(3);
    for (let turn = 1; turn < 3; turn++) {
      expect(newBytes(prompts[turn - 1]!, prompts[turn]!), `turn ${turn}`).toBeLessThan(MOST_NEW);
    }
  });

  it('calls its functions, and sends what they return', async () => {
    server.says(call('exec_command', { cmd: 'echo goose-$((40+2))' }), 'It is goose-42.');
    const { code, events, output } = await run('Count.');
    expect(code, output).toBe(0);
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'item.completed',
        item: expect.objectContaining({
          type: 'command_execution',
          aggregated_output: 'goose-42\n',
          exit_code: 0,
        }),
      }),
    );
    expect(server.requests).toHaveLength(2);
    expect(server.promptOf(1)).toContain('goose-42');
    expect(output).toContain('It is goose-42.');
  });

  it('gets an answer of the form that it asks for', async () => {
    const properties = { age: { type: 'integer' } };
    const schema = { type: 'object', properties, required: ['age'], additionalProperties: false };
    const file = join(home.path, 'schema.json');
    writeFileSync(file, JSON.stringify(schema));
    server.says('{"age":7}');
    const { code, output } = await run('An age.', 'toy', '--output-schema', file);
    expect(code, output).toBe(0);
    expect(output).toContain('{\\"age\\":7}');
    expect(JSON.stringify(server.requests[0]!.guide)).toContain('age');
  });

  it('tells what the server refuses', async () => {
    server.says();
    const { code, events, output } = await run('Hi.', 'gpt-4');
    expect(code, output).not.toBe(0);
    const failed = events.find(({ type }) => type === 'turn.failed') as { error: { message: string } };
    expect(failed.error.message).toMatch(/'gpt-4' does not exist/);
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
