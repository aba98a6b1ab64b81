import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tinyModelPath } from '../tools/support/test-engine.js';
import { runCli, type SkeinProcess, startServer } from './src/support/skein-process.js';
import { testPython } from './src/support/test-python.js';
import { readFrames } from './src/support/toy-server.js';
import { allDocuments, codeBlocks, repository as root } from './support/documents.js';
import { temporaryFolder } from './support/fresh-folders.js';
import { testModelPath } from './support/test-model.js';

const ADDRESS = 'http://127.0.0.1:8000';

const [commands, realModel, curl] = codeBlocks('README.md', 'sh') as [string, string, string];
const [openaiExample] = codeBlocks('README.md', 'js') as [string];
const [shortExample] = codeBlocks('README.md', 'ts') as [string];
const [apiCurl] = codeBlocks('docs/api.md', 'sh') as [string];
const [apiExample, responsesExample] = codeBlocks('docs/api.md', 'js') as [string, string];
const [pythonExample] = codeBlocks('docs/api.md', 'python') as [string];
const [toolsExample] = codeBlocks('docs/function-calling.md', 'js') as [string];
const [encoderExample] = codeBlocks('docs/embeddings.md', 'ts') as [string];
const [chatExample] = codeBlocks('docs/chat.md', 'ts') as [string];
const [sdkExample, langchainExample, llamaindexExample] = codeBlocks('docs/in-process.md', 'js') as [
  string,
  string,
  string,
];
const [libraryExample, callsExample] = codeBlocks('docs/embed.md', 'ts') as [string, string];
const [managerExample, hostExample, moduleExample] = codeBlocks('docs/host-server.md', 'ts') as [
  string,
  string,
  string,
];
const [callbackModule] = codeBlocks('docs/host-server.md', 'js') as [string];

/** TypeScript of the README and of docs/. */
const typescript = allDocuments()
  .filter((path) => path === 'README.md' || path.startsWith('docs/'))
  .flatMap((path) => codeBlocks(path, 'ts'));

// A program of a user: in its folder lie a model, an engine, and the packages that it installed.
const folder = temporaryFolder('skein-readme');
let server: SkeinProcess;

beforeAll(async () => {
  for (const name of ['openai', 'ai', '@langchain/core', 'llamaindex', 'zod', '@types/node'])
    install(name, join(root, 'node_modules', name));
  install('skein', root);
  symlinkSync(tinyModelPath('gqa'), join(folder, 'smollm2-135m-instruct'));
  symlinkSync(tinyModelPath('bert-mean'), join(folder, 'all-MiniLM-L6-v2'));
  await runCli(['build', tinyModelPath('gqa'), '-o', join(folder, 'engine')]);
  writeFileSync(join(folder, 'my-callbacks.mjs'), callbackModule);
  for (const [index, code] of typescript.entries()) writeFileSync(join(folder, `example-${index}.mts`), code);
  server = await startServer(['--model', tinyModelPath('gqa'), '--default-max-tokens', '8']);
});
afterAll(() => server?.stop());

function install(name: string, target: string): void {
  const link = join(folder, 'node_modules', name);
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(target, link);
}

/** Runs an example of the README, with the running server's address in it, in the user's folder. */
async function run(
  command: string,
  name: string,
  code: string,
  url = server.url,
): Promise<{ stdout: string; stderr: string }> {
  const path = join(folder, name);
  writeFileSync(path, code.replaceAll(ADDRESS, url));
  const env = { ...process.env, SKEIN_CACHE_DIR: join(folder, 'cache') };
  return promisify(execFile)(command, [path], { cwd: folder, env });
}

/** Chat requests that the server has answered well. (What a random model says may be no text at all.) */
async function chats(): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const line = /^http_requests_total\{handler="\/v1\/chat\/completions",.*status="2xx"\} (\d+)$/m;
  return Number(line.exec(text)?.[1] ?? 0);
}

describe('the README, and docs/', () => {
  it('names scripts that there are in its commands', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
    expect(commands).toBe('npm ci\nnpm start\n');
    expect(realModel).toMatch(/^npm start -- --model \S+ /);
    expect(scripts).toMatchObject({ start: expect.stringContaining('serve'), test: expect.any(String) });
  });

  it('has a request for curl that the server answers with a stream', async () => {
    const [, url] = /curl (\S+)/.exec(curl)!;
    const [, header] = /-H '([^']+)'/.exec(curl)!;
    const [, body] = /-d '([^']+)'/.exec(curl)!;
    const [name, value] = header!.split(': ') as [string, string];
    const address = url!.replace(ADDRESS, server.url);
    const response = await fetch(address, { method: 'POST', headers: { [name]: value }, body: body! });
    expect(response.status).toBe(200);
    expect((await readFrames(response)).data.at(-1)).toBe('[DONE]');
    expect(apiCurl).toBe(curl);
  });

  it('has an example for the openai package of npm that runs', async () => {
    const before = await chats();
    const { stderr } = await run(process.execPath, 'openai.mjs', openaiExample);
    expect(stderr).toBe('');
    await expect.poll(chats).toBe(before + 1);
    expect(apiExample).toBe(openaiExample);
  });

  // The tiny model's context is too short for the description of a tool.
  it.skipIf(testModelPath === null)('has examples of tools and of responses that run', async () => {
    const real = await startServer(['--model', testModelPath!]);
    const tools = await run(process.execPath, 'tools.mjs', toolsExample, real.url);
    const responses = await run(process.execPath, 'responses.mjs', responsesExample, real.url);
    await real.stop();
    for (const { stdout, stderr } of [tools, responses]) {
      expect(stderr).toBe('');
      expect(stdout.trim()).not.toBe('');
    }
  });

  it.skipIf(testModelPath === null)('has an example of a chat that runs', async () => {
    // So small a model may call the function in every round: with 200 tokens each that takes minutes.
    const code = chatExample
      .replace('./smollm2-135m-instruct', testModelPath!)
      .replaceAll('maxTokens: 200', 'maxTokens: 60');
    const { stdout, stderr } = await run(process.execPath, 'chat.mjs', code);
    expect(stderr).toBe('');
    expect(stdout.trim().split('\n').at(-1)).toMatch(/ \d{1,3}$/);
  });

  it.skipIf(testModelPath === null)('has an example of the AI SDK in process that runs', async () => {
    const code = sdkExample.replace('./smollm2-135m-instruct', testModelPath!);
    const { stdout, stderr } = await run(process.execPath, 'ai-sdk.mjs', code);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/2 [01]\n$/);
  });

  it.skipIf(testModelPath === null)(
    'has examples of LangChain.js and LlamaIndex.TS in process that run',
    async () => {
      const real = (code: string) => code.replace('./smollm2-135m-instruct', testModelPath!);
      const chain = await run(process.execPath, 'langchain.mjs', real(langchainExample));
      expect(chain.stderr).toBe('');
      expect(chain.stdout).toMatch(/name: 'get_weather'[\s\S]*age: \d[\s\S]*\d\n$/);
      const index = await run(process.execPath, 'llamaindex.mjs', real(llamaindexExample));
      expect(index.stderr).toBe('');
      expect(index.stdout.trim()).not.toBe('');
    },
  );

  it.skipIf(testPython === null)('has an example for the openai package of pip that runs', async () => {
    const before = await chats();
    const { stderr } = await run(testPython!, 'openai_example.py', pythonExample);
    expect(stderr).toBe('');
    await expect.poll(chats).toBe(before + 1);
  });

  it('has TypeScript that compiles', async () => {
    const files = typescript.map((_, index) => `example-${index}.mts`);
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023'];
    const tsc = join(root, 'tools/tsc.mjs');
    const compiled = promisify(execFile)(process.execPath, [tsc, ...options, '--types', 'node', ...files], {
      cwd: folder,
    });
    expect(await compiled.catch((error: unknown) => error)).toMatchObject({ stdout: '', stderr: '' });
    expect(files).toHaveLength(13);
  });

  it.each([
    ['README.md', shortExample],
    ['docs/embed.md', libraryExample],
    ['docs/host-server.md', hostExample],
  ])('has a library example in %s that runs, with the cache in SKEIN_CACHE_DIR', async (_, example) => {
    const { stdout, stderr } = await run(process.execPath, 'library.mjs', example);
    expect(stdout.length).toBeGreaterThan(0);
    expect(stderr).toBe('');
  });

  it('has an example of functions, which the model calls', async () => {
    const demo = JSON.stringify(join(root, 'models/demo/gosling'));
    const code = callsExample.replace("'./smollm2-135m-instruct'", demo).replace('JSON.parse(json)', 'json');
    const { stdout, stderr } = await run(process.execPath, 'calls.mjs', code);
    expect(stdout).toMatch(/^\S+ get_weather \{/m);
    expect(stderr).toBe('');
  });

  it('has an example of embeddings, scores and rankings that runs', async () => {
    const code = `${encoderExample}\nconsole.log(cat.length, man.length, scores.length, ranked.length);`;
    const { stdout, stderr } = await run(process.execPath, 'encoder.mjs', code);
    expect([stdout, stderr]).toEqual(['64 of 100\n100 of 100\n48 48 2 1\n', '']);
  });

  it('has a manager whose functions get eight responses and as many statistics', async () => {
    const { stdout, stderr } = await run(process.execPath, 'manager.mjs', managerExample);
    expect(stdout.match(/^1n \[/gm)).toHaveLength(8);
    expect(stdout.match(/\] true\s*$/gm)).toHaveLength(1);
    expect(stdout.match(/^1$/gm)).toHaveLength(8);
    expect(stderr).toBe('');
  });

  it('has a callback module that gets its one response inside the worker', async () => {
    const { stdout, stderr } = await run(process.execPath, 'module.mjs', moduleExample);
    expect(stdout.match(/^1n \{/gm)).toHaveLength(1);
    expect(stdout).toMatch(/name: 'output_ids'[\s\S]* true\s*$/);
    expect(stderr).toBe('');
  });
});
