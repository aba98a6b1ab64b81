import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testProgram } from '../../support/test-programs.js';
import { type Ended, ProgramHome, type Running } from './run-program.js';
import { call, ENDLESS, MOST_NEW, newBytes, ScriptedServer } from './scripted-server.js';

const cline = testProgram('cline');
/** Its sessions run in its own process, not in a daemon that outlives it. */
const LOCAL = { CLINE_SESSION_BACKEND_MODE: 'local' };

interface AgentEvent {
  type: string;
  text?: string;
  contentType?: string;
  output?: unknown;
  inputTokens?: number;
}

/** What its agent reports, in the order in which it happens. */
const agentEvents = ({ events }: Ended) =>
  events.flatMap(({ type, event }) => (type === 'agent_event' ? [event as AgentEvent] : []));

describe.skipIf(cline === null)('Cline', () => {
  const server = new ScriptedServer();
  const home = new ProgramHome();

  beforeAll(async () => {
    await server.start();
    await configure('toy');
  });
  afterAll(async () => {
    home.remove();
    await server.close();
  });

  const configure = async (model: string) => {
    const address = ['--baseurl', `${server.url}/v1`, '--apikey', 'none'];
    const auth = ['auth', '--provider', 'openai', '--modelid', model, ...address];
    const { code, output } = await home.run(cline!, auth, LOCAL);
    expect(code, output).toBe(0);
  };
  /** A prompt of one word would be a command. */
  const start = (prompt: string, model = 'toy'): Running =>
    home.start(cline!, ['--json', '--retries', '1', '--model', model, prompt], LOCAL);
  const run = (prompt: string, model?: string): Promise<Ended> => start(prompt, model).ended;

  it('calls its functions in turns, each of which begins with the whole of the one before', async () => {
    const shell = (command: string) => call('run_commands', { commands: [command] });
    server.says(shell('echo goose-$((40+2))'), shell('echo hiss'), 'It is goose-42.');
    const ended = await run('Count the geese.');
    expect(ended.code, ended.output).toBe(0);
    expect(server.requests).toHaveLength(3);
    const prompts = server.requests.map((_, i) => server.promptOf(i));
    expect(prompts[0]).toContain('<user>Count the geese.</>');
    for (let turn = 1; turn < 3; turn++) {
      expect(newBytes(prompts[turn - 1]!, prompts[turn]!), `turn ${turn}`).toBeLessThan(MOST_NEW);
    }
    expect(prompts[1]).toContain('goose-42');

    const reported = agentEvents(ended);
    const usages = reported.filter(({ type }) => type === 'usage').map(({ inputTokens }) => inputTokens);
    expect(usages).toEqual(server.requests.map(({ promptTokens }) => promptTokens.length));
    const ends = reported.filter(({ type }) => type === 'content_end');
    const result = ends.find(({ contentType }) => contentType === 'tool')!;
    expect(result.output).toEqual([expect.objectContaining({ result: 'goose-42\n', success: true })]);
    expect(ends.at(-1)).toMatchObject({ contentType: 'text', text: 'It is goose-42.' });
  });

  it('tells what the server refuses', async () => {
    server.says();
    const { code, output } = await run('Say hello.', 'gpt-4');
    expect(code, output).not.toBe(0);
    expect(output).toMatch(/'gpt-4' does not exist/);
    expect(server.requests).toHaveLength(0);
  });

  it('is ended in the middle of a stream, and nothing is left of its request', async () => {
    server.says(ENDLESS);
    const { child, ended } = start('Tell me a story.');
    await expect.poll(() => server.toy.engine.active).toBe(1);
    child.kill('SIGINT'); // after a SIGTERM in a stream its process hangs
    await ended;
    await expect.poll(() => server.toy.engine.cancelled).toBe(1);
    expect(server.toy.engine.active).toBe(0);
  });
});
