import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BODY, type Prebuilt, withServer } from './server.js';

/** Where each may be found; what is not given is left out. */
export interface OtherGenerators {
  wrk?: string | undefined;
  autocannon?: string | undefined;
  /** Folder of a Python environment's commands. */
  python?: string | undefined;
  /** Folder of a tokenizer, which the Python generators want. */
  tokenizer?: string | undefined;
}

const CONNECTIONS = 64;
const EVENTS = 100;

interface Ran {
  requests: number;
  /** As the generator says, without its start. */
  seconds: number;
  /** Of all its processes, their start included. */
  cpuSeconds: number;
  version: string;
}

/** The same scenario by other generators: whole answers, then streams, from 64 connections in a closed loop. */
export async function others(seconds: number, paths: OtherGenerators): Promise<string[]> {
  const lines = [
    '| generator | answers | requests/s | events/s | processor seconds for 1000 requests, its start included |',
    '|---|---|---|---|---|',
  ];
  const row = (name: string, answers: string, events: number, ran: Ran) => {
    const rate = ran.requests / ran.seconds;
    const eventRate = events === 0 ? '' : (rate * events).toFixed(0);
    const cost = ((1000 * ran.cpuSeconds) / ran.requests).toFixed(3);
    lines.push(`| ${name} ${ran.version} | ${answers} | ${rate.toFixed(0)} | ${eventRate} | ${cost} |`);
    console.log(lines.at(-1));
  };
  const folder = mkdtempSync(join(tmpdir(), 'skein-loadgen-others-'));
  try {
    await withServer({ tokens: 0 }, async (server) => {
      row('skein bench', 'whole', 0, skeinBench(server, seconds, false));
      if (paths.wrk !== undefined) row('wrk', 'whole', 0, wrk(paths.wrk, server, seconds, folder));
      if (paths.autocannon !== undefined) {
        row('autocannon', 'whole', 0, autocannon(paths.autocannon, server, seconds));
      }
    });
    const { python, tokenizer } = paths;
    await withServer({ tokens: EVENTS }, async (server) => {
      row('skein bench', `streams of ${EVENTS} events`, EVENTS, skeinBench(server, seconds, true));
      if (python === undefined || tokenizer === undefined) return;
      const streams = `streams of ${EVENTS} events`;
      row('guidellm', streams, EVENTS, guidellm(python, tokenizer, server, seconds, folder));
      row('aiperf', streams, EVENTS, aiperf(python, tokenizer, server, seconds, folder));
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return lines;
}

/** Runs a command to its end. @throws Error with its last words where it fails. */
function timed(
  command: string,
  args: readonly string[],
  cwd?: string,
): { stdout: string; cpuSeconds: number } {
  const quoted = [command, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const script = `TIMEFORMAT='cpu %U %S'; time ${quoted}`;
  const { stdout, stderr, status } = spawnSync('bash', ['-c', script], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    ...(cwd === undefined ? {} : { cwd }),
  });
  const [, user, system] = /cpu ([\d.]+) ([\d.]+)\s*$/.exec(stderr) ?? [];
  if (status !== 0 || user === undefined) {
    throw new Error(`${command} ended with ${status}: ${(stderr + stdout).slice(-2000)}`);
  }
  return { stdout, cpuSeconds: Number(user) + Number(system) };
}

function skeinBench(server: Prebuilt, seconds: number, stream: boolean): Ran {
  const cli = new URL('../../dist/bin/skein.js', import.meta.url).pathname;
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

/** Its report's own figures: requests a second of those that completed. */
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

function versionOf(python: string, name: string): string {
  const code = `import importlib.metadata as m;print(m.version("${name}"))`;
  return spawnSync(join(python, 'python'), ['-c', code], { encoding: 'utf8' }).stdout.trim();
}
