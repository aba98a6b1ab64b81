import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { markdownTable, tableRow } from '../../support/markdown-table.js';
import { BODY, type Prebuilt, withServer } from './server.js';

/** Paths of the other generators; '' leaves one out. */
export interface OtherGenerators {
  wrk: string;
  autocannon: string;
  /** Folder of a Python environment's commands. */
  python: string;
  /** Folder of a tokenizer, which the Python generators want. */
  tokenizer: string;
  /** Folder with vLLM and what its bench imports, installed without the rest: its engine is not needed. */
  vllm: string;
}

const CONNECTIONS = 64;
const EVENTS = 100;
/** The longest that one generator may run, its start included. */
const LONGEST_SECONDS = 45;
/** vLLM's has no limit of time. */
const VLLM_REQUESTS = 2000;

interface Ran {
  requests: number;
  /** Seconds of the run as the generator says, without its start. */
  seconds: number;
  /** Processor time of all its processes, their start included. */
  cpuSeconds: number;
  version: string;
}

const NOT_RUN =
  "llmperf did not run: what pip has under that name is another program, and Anyscale's is no package. genai-perf has become aiperf.";

/** Whole answers, by generators of requests, from 64 connections in a closed loop. */
export function others(
  seconds: number,
  { wrk: wrkPath, autocannon: autocannonPath }: OtherGenerators,
  progress: (line: string) => void,
): Promise<string[]> {
  return inTurn(0, progress, (server, folder) => ({
    'skein bench': () => skeinBench(server, seconds, false),
    ...(wrkPath === '' ? {} : { wrk: () => wrk(wrkPath, server, seconds, folder) }),
    ...(autocannonPath === '' ? {} : { autocannon: () => autocannon(autocannonPath, server, seconds) }),
  }));
}

/** Streams, by the field's generators in Python, likewise. */
export async function othersOfPython(
  seconds: number,
  { python, tokenizer, vllm }: OtherGenerators,
  progress: (line: string) => void,
): Promise<string[]> {
  if (python === '' || tokenizer === '')
    throw new Error('--parts others-python: expected --python and --tokenizer, found one of them missing.');
  const lines = await inTurn(EVENTS, progress, (server, folder) => ({
    'skein bench': () => skeinBench(server, seconds, true),
    guidellm: () => guidellm(python, tokenizer, server, seconds, folder),
    aiperf: () => aiperf(python, tokenizer, server, seconds, folder),
    ...(vllm === ''
      ? {}
      : { "vllm's bench serve": () => vllmBench(python, vllm, tokenizer, server, folder) }),
  }));
  return [...lines, '', NOT_RUN];
}

/** A row for each generator, against the same server; `events` 0 for whole answers. */
async function inTurn(
  events: number,
  progress: (line: string) => void,
  generators: (server: Prebuilt, folder: string) => Record<string, () => Ran>,
): Promise<string[]> {
  const rows: string[][] = [];
  const folder = mkdtempSync(join(tmpdir(), 'skein-loadgen-others-'));
  try {
    await withServer({ tokens: events }, async (server) => {
      for (const [name, run] of Object.entries(generators(server, folder))) {
        rows.push(rowOf(name, events, run));
        progress(tableRow(rows.at(-1)!));
      }
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const head = [
    `generator of ${events === 0 ? 'requests' : `streams of ${events} events`}`,
    'requests/s',
    'events/s',
    'processor seconds for 1000 requests, its start included',
  ];
  return [markdownTable(head, rows)];
}

/** The row of one generator. One that fails has a row with its last words: the others are worth theirs. */
function rowOf(name: string, events: number, run: () => Ran): string[] {
  try {
    const { requests, seconds, cpuSeconds, version } = run();
    const rate = requests / seconds;
    const eventRate = events === 0 ? '' : (rate * events).toFixed(0);
    const cost = ((1000 * cpuSeconds) / requests).toFixed(3);
    return [`${name} ${version}`.trim(), rate.toFixed(0), eventRate, cost];
  } catch (error) {
    const words = (error as Error).message.trim().split('\n').at(-1)!;
    console.error((error as Error).message);
    return [name, `did not run: ${words.replaceAll('|', '/').slice(0, 200)}`, '', ''];
  }
}

/** Runs a command to its end. @throws Error with its last words where it fails. */
function timed(
  command: string,
  args: readonly string[],
  cwd?: string,
  env: Record<string, string> = {},
): { stdout: string; cpuSeconds: number } {
  const quoted = [command, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  // The time is that of the command with all that it has started.
  const script = `TIMEFORMAT='cpu %U %S'; time timeout -k 5 ${LONGEST_SECONDS} ${quoted}`;
  const { stdout, stderr, status } = spawnSync('bash', ['-c', script], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    env: { ...process.env, ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  const [, user, system] = /cpu ([\d.]+) ([\d.]+)\s*$/.exec(stderr) ?? [];
  if (status !== 0 || user === undefined) {
    throw new Error(`${command} ended with ${status}: ${(stderr + stdout).slice(-2000)}`);
  }
  return { stdout, cpuSeconds: Number(user) + Number(system) };
}

function skeinBench(server: Prebuilt, seconds: number, stream: boolean): Ran {
  const cli = new URL('../../../dist/bin/skein.js', import.meta.url).pathname;
  const args = [
    cli,
    'bench',
    server.url,
    '--model',
    'm',
    '--concurrency',
    `${CONNECTIONS}`,
    '--workers',
    '1',
  ];
  args.push('--duration', `${seconds}`, '--samples', '100', '--input-tokens', '20', '--no-scrape');
  args.push('--no-calibrate', '--warmup', '0', '-o', '-');
  if (!stream) args.push('--no-stream');
  const { stdout, cpuSeconds } = timed(process.execPath, args);
  const [run] = (JSON.parse(stdout) as { runs: { seconds: number; requests: { total: number } }[] }).runs;
  return { requests: run!.requests.total, seconds: run!.seconds, cpuSeconds, version: '' };
}

function wrk(command: string, { url }: Prebuilt, seconds: number, folder: string): Ran {
  const script = join(folder, 'post.lua');
  writeFileSync(
    script,
    `wrk.method = "POST"\nwrk.headers["content-type"] = "application/json"\nwrk.body = [[${BODY}]]\n`,
  );
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}`, '-s', script, `${url}/v1/chat/completions`];
  const { stdout, cpuSeconds } = timed(command, args);
  const [, requests, time] = /(\d+) requests in ([\d.]+)s/.exec(stdout)!;
  const version = spawnSync(command, ['--version'], { encoding: 'utf8' }).stdout;
  return {
    requests: Number(requests),
    seconds: Number(time),
    cpuSeconds,
    version: /wrk (?:debian\/)?([\d.]+)/.exec(version)?.[1] ?? '',
  };
}

function autocannon(command: string, { url }: Prebuilt, seconds: number): Ran {
  const args = [
    '-c',
    `${CONNECTIONS}`,
    '-d',
    `${seconds}`,
    '-m',
    'POST',
    '-H',
    'content-type=application/json',
  ];
  const { stdout, cpuSeconds } = timed(command, [
    ...args,
    '-b',
    BODY,
    '--json',
    `${url}/v1/chat/completions`,
  ]);
  const { requests, duration } = JSON.parse(stdout) as { requests: { total: number }; duration: number };
  const version = spawnSync(command, ['--version'], { encoding: 'utf8' }).stdout;
  return {
    requests: requests.total,
    seconds: duration,
    cpuSeconds,
    version: /autocannon v([\d.]+)/.exec(version)?.[1] ?? '',
  };
}

/** Figures of guidellm's own report: requests a second of those that completed. */
function guidellm(
  python: string,
  tokenizer: string,
  { url }: Prebuilt,
  seconds: number,
  folder: string,
): Ran {
  const args = ['run', '--backend', `kind=openai_http,target=${url},model=m`];
  args.push('--profile', `kind=concurrent,streams=${CONNECTIONS}`);
  args.push('--constraint', `kind=max_duration,seconds=${seconds}`);
  args.push('--tokenizer', `kind=huggingface_auto,model=${tokenizer}`);
  args.push('--data', 'kind=synthetic_text,prompt_tokens=20,output_tokens=100');
  args.push('--output', `kind=json,path=${join(folder, 'guidellm.json')}`, '--disable-console');
  const { cpuSeconds } = timed(join(python, 'guidellm'), args, folder);
  const report = spawnSync(
    join(python, 'python'),
    [
      '-c',
      'import json,sys;b=json.load(open(sys.argv[1]))["benchmarks"][0];' +
        'r=b["metrics"]["requests_per_second"]["successful"]["mean"];' +
        't=b["metrics"]["request_totals"]["successful"];print(json.dumps([r,t]))',
      join(folder, 'guidellm.json'),
    ],
    { encoding: 'utf8' },
  );
  const [rate, total] = JSON.parse(report.stdout) as [number, number];
  return { requests: total, seconds: total / rate, cpuSeconds, version: versionOf(python, 'guidellm') };
}

function aiperf(python: string, tokenizer: string, { url }: Prebuilt, seconds: number, folder: string): Ran {
  const args = ['profile', '-m', 'm', '-u', url, '--endpoint-type', 'chat', '--streaming'];
  args.push(
    '--concurrency',
    `${CONNECTIONS}`,
    '--benchmark-duration',
    `${seconds}`,
    '--tokenizer',
    tokenizer,
  );
  args.push('--isl', '20', '--osl', '100', '--artifact-dir', folder, '--ui', 'none');
  // Counts as the server reports them, and nothing but the load.
  args.push('--use-server-token-count', '--no-gpu-telemetry', '--no-server-metrics');
  const { cpuSeconds } = timed(join(python, 'aiperf'), args, folder);
  const report = spawnSync(
    join(python, 'python'),
    [
      '-c',
      'import glob,json,sys;r=json.load(open(glob.glob(sys.argv[1]+"/**/*aiperf.json",recursive=True)[0]));' +
        'print(json.dumps([r["request_throughput"]["avg"],r["request_count"]["avg"]]))',
      folder,
    ],
    { encoding: 'utf8' },
  );
  const [rate, total] = JSON.parse(report.stdout) as [number, number];
  return { requests: total, seconds: total / rate, cpuSeconds, version: versionOf(python, 'aiperf') };
}

/** Figures of the report of vLLM's bench. */
function vllmBench(python: string, vllm: string, tokenizer: string, { url }: Prebuilt, folder: string): Ran {
  const args = ['-c', 'from vllm.entrypoints.cli.main import main; main()', 'bench', 'serve'];
  args.push('--backend', 'openai-chat', '--base-url', url, '--endpoint', '/v1/chat/completions');
  args.push('--model', 'm', '--tokenizer', tokenizer, '--dataset-name', 'random');
  args.push(
    '--random-input-len',
    '20',
    '--random-output-len',
    `${EVENTS}`,
    '--num-prompts',
    `${VLLM_REQUESTS}`,
  );
  args.push('--max-concurrency', `${CONNECTIONS}`, '--disable-tqdm', '--save-result');
  args.push('--result-dir', folder, '--result-filename', 'vllm.json');
  const env = { PYTHONPATH: vllm };
  const { cpuSeconds } = timed(join(python, 'python'), args, folder, env);
  const { completed, duration } = JSON.parse(readFileSync(join(folder, 'vllm.json'), 'utf8')) as {
    completed: number;
    duration: number;
  };
  return { requests: completed, seconds: duration, cpuSeconds, version: versionOf(python, 'vllm', env) };
}

function versionOf(python: string, name: string, env: Record<string, string> = {}): string {
  const code = `import importlib.metadata as m;print(m.version("${name}"))`;
  const options = { encoding: 'utf8', env: { ...process.env, ...env } } as const;
  return spawnSync(join(python, 'python'), ['-c', code], options).stdout.trim();
}
