import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { repository } from '../../../support/documents.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { testEncoderPath } from '../../../support/test-encoder.js';
import { testModelPath } from '../../../support/test-model.js';
import { expectIdle } from '../../support/metrics.js';
import { type SkeinProcess, startServer } from '../../support/skein-process.js';
import { testPython, testPythonWithOpenai2 } from '../../support/test-python.js';
import { templatedCodec } from '../../support/toy-codec.js';
import { listen, say, toyServer } from '../../support/toy-server.js';
import { CASES, type ClientPage, type Connection, clientPages } from './client-page.js';
import { pinnedPip } from './pinned-packages.js';
import { missingPackages, type Printed, Programs } from './programs.js';

const ADDRESS = 'http://127.0.0.1:8000';

/** Requests that ended because their clients had gone. */
async function aborted(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = /^vllm:request_success_total\{model_name="smollm2",.*finished_reason="abort"\} (\d+)$/m;
  return Number(line.exec(text)![1]);
}

async function post(url: string, path: string, body: object): Promise<unknown> {
  return (await fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
}

/** A model that calls the function of the pages of itself. */
async function callingModel(): Promise<{ url: string; close(): Promise<void> }> {
  const call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>';
  const codec = templatedCodec('{% if tools %}{{ tools }}<tool_call>{% endif %}{{ messages }}');
  return listen(
    toyServer(() => say(call), { model: { id: 'smollm2', codec, maxInputLen: 4000, maxSeqLen: 5000 } }),
  );
}

/** Whether a client can ask for a call: Ollama's API has no word for it, and the real model does not call of itself. */
const mustCall = ({ name }: ClientPage): boolean => name !== 'ollama';

const PYTHONS = { newer: testPython, older: testPythonWithOpenai2 };
type Environment = keyof typeof PYTHONS | 'node';

/** Where the programs of a page run: packages that cannot be together are in environments of their own. */
function environmentOf({ packages }: ClientPage, { language }: Connection): Environment {
  if (language === 'js') return 'node';
  return packages.pip.some((name) => pinnedPip.older.has(name)) ? 'older' : 'newer';
}

interface Run {
  page: ClientPage;
  connection: Connection;
  name: string;
}

const missing = {
  newer: missingPackages(testPython, pinnedPip.newer),
  older: missingPackages(testPythonWithOpenai2, pinnedPip.older),
};

const runs = clientPages().flatMap((page) =>
  page.connections.map((connection): Run => {
    return { page, connection, name: `${page.name}.md, ${connection.language} ${connection.number}` };
  }),
);

/** Whether the packages of a page are there, in the versions that CI has. */
function isInstalled({ page, connection }: Run): boolean {
  const environment = environmentOf(page, connection);
  return environment === 'node' || page.packages.pip.every((name) => !missing[environment].includes(name));
}

describe.skipIf(testModelPath === null || testEncoderPath === null)('programs of docs/clients', () => {
  let server: SkeinProcess;
  /** What the server says without a client. */
  let said: string;
  const folder = temporaryFolder('skein-client-pages');
  const processes = new Map<Environment, Programs>();

  beforeAll(async () => {
    symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'));
    const models = ['--model', `smollm2=${testModelPath}`, '--model', `minilm=${testEncoderPath}`];
    const limits = [
      '--max-active-requests',
      '8',
      '--max-context-tokens',
      '2048',
      '--kv-cache-tokens',
      '8192',
    ];
    server = await startServer([...models, '--weights', 'bf16', '--tool-call-parser', 'hermes', ...limits]);
    const messages = [{ role: 'user', content: 'What is the capital of France?' }];
    const answer = await post(server.url, '/v1/chat/completions', {
      model: 'smollm2',
      messages,
      temperature: 0,
    });
    said = (answer as { choices: [{ message: { content: string } }] }).choices[0].message.content;
    expect(said).toContain('Paris');
  });

  afterAll(async () => {
    for (const programs of processes.values()) programs.close();
    await server?.stop();
  });

  function programsOf({ page, connection }: Run): Programs {
    const environment = environmentOf(page, connection);
    if (!processes.has(environment)) {
      const python = PYTHONS[environment as keyof typeof PYTHONS];
      processes.set(environment, environment === 'node' ? Programs.node(folder) : Programs.python(python!));
    }
    return processes.get(environment)!;
  }

  describe.each(runs)('$name', (run) => {
    const { page, connection } = run;
    const it = test.runIf(isInstalled(run));
    const runOf = async (heading: string, url = server.url): Promise<Printed> => {
      const program = page.program(connection, heading);
      if (program === null) throw new Error(`${page.name}.md has no program for '${heading}'.`);
      return programsOf(run).run(program.replaceAll(ADDRESS, url));
    };

    it('chat: prints what the server says', async () => {
      expect((await runOf(CASES.chat)).text.trim()).toBe(said);
    });

    it('stream: prints the same, piece by piece', async () => {
      const { pieces, text } = await runOf(CASES.stream);
      expect(text).toBe(said);
      expect(pieces.length).toBeGreaterThan(2);
    });

    it('call a function: prints its name, and arguments of its schema', async () => {
      const model = mustCall(page) ? null : await callingModel();
      const { text } = await runOf(CASES.call, model?.url);
      await model?.close();
      for (const call of text.trim().split('\n')) {
        expect(call).toMatch(/^get_weather \{/);
        z.strictObject({ city: z.enum(['Paris', 'Rome']) }).parse(
          JSON.parse(call.slice('get_weather '.length)),
        );
      }
    });

    it('structured output: prints JSON of the schema', async () => {
      const person = JSON.parse((await runOf(CASES.structured)).text);
      z.strictObject({ name: z.string().max(20), age: z.int().min(0).max(150) }).parse(person);
    });

    it("error: catches the client's own exception, and prints the status and what the server says", async () => {
      const { text } = await runOf(CASES.error);
      expect(text).toContain('404');
      expect(text).toMatch(/'gpt-4' (does not exist|not found)/);
    });

    it('cancel: the server gives the request up', async () => {
      const before = await aborted(server.url);
      await runOf(CASES.cancel);
      await expect.poll(() => aborted(server.url)).toBe(before + 1);
      await expectIdle(server.url);
    });
  });

  const litellm = runs.find(({ page }) => page.name === 'litellm')!;
  test.runIf(isInstalled(litellm))('litellm.md: ranks as the server does', async () => {
    const program = litellm.page.program(litellm.connection, 'Rerank')!.replaceAll(ADDRESS, server.url);
    const { text } = await programsOf(litellm).run(program);
    const query = 'Where do geese fly in winter?';
    const documents = ['Bread is made of flour.', 'Geese fly south in winter.'];
    expect(program).toContain(query);
    for (const document of documents) expect(program).toContain(document);
    const ranking = await post(server.url, '/v1/rerank', { model: 'minilm', query, documents });
    const { results } = ranking as { results: { index: number; relevance_score: number }[] };
    expect(results[0]!.index).toBe(1);
    const lines = results.map(({ index, relevance_score: score }) => `${index} ${score}`);
    expect(text.trim().split('\n')).toEqual(lines);
  });
});
