import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { repository } from '../../../support/documents.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { testEncoderPath } from '../../../support/test-encoder.js';
import { testModelPath } from '../../../support/test-model.js';
import { expectIdle } from '../../support/metrics.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';
import { testPythonWithOpenai2, testPython } from '../../support/test-python.js';
import { CASES, type ClientPage, type Connection, clientPages } from './client-page.js';
import { pinnedPip } from './pinned-packages.js';
import { type Printed, Programs } from './programs.js';

const ADDRESS = 'http://127.0.0.1:8000';
const pages = clientPages();

/** Requests that ended because their clients had gone. */
async function aborted(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = /^vllm:request_success_total\{model_name="smollm2",.*finished_reason="abort"\} (\d+)$/m;
  return Number(line.exec(text)![1]);
}

async function post(url: string, path: string, body: object): Promise<unknown> {
  return (await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
}

describe.skipIf(testModelPath === null || testEncoderPath === null)('programs of docs/clients', () => {
  let server: SkeinProcess;
  /** What the server says without a client. */
  let said: string;
  const folder = temporaryFolder('skein-client-pages');
  const processes = new Map<string, Programs>();

  beforeAll(async () => {
    symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
    const models = ['--model', `smollm2=${testModelPath}`, '--model', `minilm=${testEncoderPath}`];
    const limits = ['--max-active-requests', '8', '--max-context-tokens', '2048', '--kv-cache-tokens', '8192'];
    server = await startServer([...models, '--weights', 'bf16', '--tool-call-parser', 'hermes', ...limits]);
    const messages = [{ role: 'user', content: 'What is the capital of France?' }];
    const answer = await post(server.url, '/v1/chat/completions', { model: 'smollm2', messages, temperature: 0 });
    said = (answer as { choices: [{ message: { content: string } }] }).choices[0].message.content;
    expect(said).toContain('Paris');
  }, 300_000);

  afterAll(async () => {
    for (const programs of processes.values()) programs.close();
    await server?.stop();
  });

  /** The process for programs of a page; packages that cannot be together are in environments of their own. */
  function programsOf(page: ClientPage, { language }: Connection): Programs {
    const older = page.packages.pip.some((name) => pinnedPip.older.has(name));
    const key = language === 'js' ? 'node' : older ? 'older' : 'newer';
    const make = {
      node: () => Programs.node(folder),
      older: () => Programs.python(testPythonWithOpenai2!),
      newer: () => Programs.python(testPython!),
    }[key];
    if (!processes.has(key)) processes.set(key, make());
    return processes.get(key)!;
  }

  const runs = pages.flatMap((page) =>
    page.connections.map((connection) => ({
      page,
      connection,
      name: `${page.name}.md in ${connection.language}, connection ${connection.number}`,
    })),
  );

  describe.each(runs)('$name', ({ page, connection }) => {
    const runOf = (heading: string) => (): Promise<Printed> => {
      const program = page.program(connection, heading);
      if (program === null) throw new Error(`${page.name}.md has no program for '${heading}'.`);
      return programsOf(page, connection).run(program.replaceAll(ADDRESS, server.url));
    };

    it('chat: prints what the server says', async () => {
      expect((await runOf(CASES.chat)()).text.trim()).toBe(said);
    });

    it('stream: prints the same, piece by piece', async () => {
      const { pieces, text } = await runOf(CASES.stream)();
      expect(text).toBe(said);
      expect(pieces.length).toBeGreaterThan(2);
    });

    it('call a function: prints its name, and arguments of its schema', async () => {
      const { text } = await runOf(CASES.call)();
      const calls = text.trim().split('\n');
      for (const call of calls) {
        expect(call).toMatch(/^get_weather \{/);
        z.strictObject({ city: z.enum(['Paris', 'Rome']) }).parse(JSON.parse(call.slice('get_weather '.length)));
      }
    });

    it('structured output: prints JSON of the schema', async () => {
      const person = JSON.parse((await runOf(CASES.structured)()).text);
      z.strictObject({ name: z.string().max(20), age: z.int().min(0).max(150) }).parse(person);
    });

    it("error: catches the client's own exception, and prints the status and what the server says", async () => {
      const { text } = await runOf(CASES.error)();
      expect(text).toContain('404');
      expect(text).toMatch(/'gpt-4' (does not exist|not found)/);
    });

    it('cancel: the server gives the request up', async () => {
      const before = await aborted(server.url);
      await runOf(CASES.cancel)();
      await expect.poll(() => aborted(server.url), { timeout: 30_000 }).toBe(before + 1);
      await expectIdle(server.url);
    });
  });
});
