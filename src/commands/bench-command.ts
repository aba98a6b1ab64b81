import { Command, Option } from 'commander';
import { BACKEND_NAMES } from '../../loadgen/backends/backend.js';
import { SLO_PRESETS } from '../../loadgen/metrics/slo.js';
import { helpBehind } from '../terminal/help.js';
import type { CompareFlags } from './bench-compare.js';
import type { BenchFlags } from './bench-flags.js';

const HELP = `
Lengths are 128, 64-256 (uniform) or lognormal:MEDIAN:SIGMA[:MAX].
SLOs are ttft=500,tpot=30,e2e=5000 (milliseconds) or a preset: ${Object.keys(SLO_PRESETS).join(', ')}.

Times are told from the sending of a request and from when the schedule wanted it sent. Where the client was the
bottleneck the summary says so in red, and the report in client.isBottleneck.

Exit codes: 0 for a run that came to its end, whatever the server answered; 1 for one that was cut off (the report is
written, marked incomplete) and for a server that does not answer; 2 for what is not understood.

  skein bench http://127.0.0.1:8000 --quick
  skein bench http://127.0.0.1:8000 --concurrency 32 --requests 500
  skein bench http://127.0.0.1:8000 --rate 20 --duration 60 \\
    --slo ttft=500,tpot=50 -o run.json
  skein bench http://127.0.0.1:8000 --sweep concurrency \\
    --duration 20 --html sweep.html
  skein bench compare before.json after.json
  skein bench http://127.0.0.1:8000 --arrivals gamma --burstiness 0.5 \\
    --rate 10 --input-tokens lognormal:200:0.8
`;

/** Adds the options of bench. Done only where bench is called, to keep other starts short. */
export function defineBench(command: Command): void {
  command.argument('<URL>', 'base URL of a server, with or without /v1');
  defineRequests(command);
  defineLoad(command);
  defineData(command);
  defineLimits(command);
  defineReports(command);
  helpBehind(command, HELP).action(async (url: string, flags: BenchFlags) => {
    const { bench } = await import('./bench.js');
    await bench(url, flags);
  });
  command.addCommand(compareCommand());
}

/** Adds options for the target and for fields of all requests. */
function defineRequests(command: Command): void {
  command
    .option('--model <NAME>', 'default: the first that the server names')
    .addOption(new Option('--backend <API>', 'default: chat').choices(BACKEND_NAMES))
    .option('--path <PATH>', "path of the requests, over the backend's own")
    .option('--api-key <KEY>', 'sent as a bearer token (SKEIN_API_KEY, or OPENAI_API_KEY)')
    .addOption(
      new Option('--header <NAME: VALUE>', 'a header of every request; may be repeated').argParser(gather),
    )
    .option('--ca <FILE>', 'check an https server against the certificates of this PEM file')
    .option('--insecure', "take an https server's certificate whatever it is")
    .option('--body <JSON>', 'fields of every body, such as {"temperature":0}')
    .option('--no-stream', 'ask for whole answers')
    .option(
      '--no-ignore-eos',
      'let answers end where the model ends them; for servers that do not know ignore_eos',
    );
}

/** Adds options for when requests are sent, and how many. */
function defineLoad(command: Command): void {
  const arrivals = ['poisson', 'constant', 'gamma', 'burst', 'ramp', 'max'];
  command
    .option('--quick', 'ten seconds (or --duration): tokens/s of one client, of 8, and of prompts')
    .option('--concurrency <N>', 'a closed loop: the number of requests at once (default: 8)')
    .option('--rate <R>', 'an open loop: requests a second, Poisson unless --arrivals says otherwise')
    .addOption(new Option('--arrivals <KIND>', 'how an open loop spreads them').choices(arrivals))
    .option('--burstiness <SHAPE>', 'shape of gamma arrivals: 1 is Poisson, less is burstier')
    .option('--burst-size <N>', 'requests at once of burst arrivals')
    .option('--ramp-from <R>', 'rate at the beginning of a ramp; --rate is the one at its end')
    .option('--ramp-seconds <S>', 'how long a ramp takes')
    .option(
      '--trace <FILE>',
      'times of a recorded load: JSON lines or CSV with a header (Mooncake, Azure, BurstGPT)',
    )
    .option('--speed <X>', 'play a trace X times as fast')
    .option('--requests <N>', 'requests of a run (default: 100 without --duration)')
    .option('--duration <S>', 'seconds in which requests are issued')
    .option('--max-duration <S>', 'a run is cut off after it (default: 600)')
    .option('--warmup <N>', 'requests before the run that do not count (default: 4)')
    .option(
      '--sweep <LOADS>',
      'one run at each: rate=1,2,4 or concurrency=1,8,32; rate or concurrency alone doubles until saturated',
    )
    .option('--refine <N>', 'further points around the knee of a sweep that doubles (default: 2)')
    .option('--seed <N>', 'seed of arrivals and data (default: 0)')
    .option('--repeat <N>', 'runs, each with another seed, for confidence intervals (default: 1)');
}

/** Adds options for the content of requests. */
function defineData(command: Command): void {
  const kinds = ['random', 'conversations', 'jsonl', 'trace'];
  command
    .addOption(new Option('--data <KIND>', 'default: random').choices(kinds))
    .option('--input-tokens <LENGTH>', 'length of a prompt (default: 128)')
    .option('--output-tokens <LENGTH>', 'length of an answer (default: 64)')
    .option('--prefix-tokens <N>', 'length of a beginning that prompts share, before their own tokens')
    .option('--prefixes <N>', 'different beginnings (default: 1)')
    .option('--samples <N>', 'distinct prompts; then they come again (default: all differ)')
    .option('--turns <N>', 'turns of a conversation (default: 3)')
    .option('--think-time <S>', 'time between an answer and the next turn of a conversation (default: 0)')
    .option('--system-tokens <N>', 'length of a system message that all conversations share')
    .option('--file <FILE>', 'jsonl data: prompt, messages, conversations (ShareGPT) or body on each line')
    .option('--shuffle', 'read jsonl data in another order for each seed')
    .option(
      '--multi-turn',
      "take each message of the user's in jsonl data as a turn that waits for the answer",
    );
}

/** Adds options for limits of requests and for the load generator itself. */
function defineLimits(command: Command): void {
  command
    .option('--slo <LIMITS>', 'limits for goodput')
    .option('--timeout <S>', 'a request may take so long (default: 300)')
    .option('--stall <S>', 'a request may be silent so long (default: 60)')
    .option(
      '--retries <N>',
      'repetitions of a request that was answered 429, after its Retry-After (default: 0)',
    )
    .option('--workers <N>', 'worker processes (default: as the machine has room)')
    .option('--connections <N>', 'connections that are opened ahead (default: by the load)')
    .option(
      '--max-in-flight <N>',
      'requests at once in an open loop; more wait, and the report says so (default: 10000)',
    )
    .option('--no-keep-alive', 'a new connection for each request')
    .option('--busy-wait', 'poll the clock for exact issue times; costs a processor for each worker')
    .option('--no-cpu-affinity', 'leave it to the system on which processors the load generator runs')
    .option('--no-scrape', "do not read the server's /metrics and /stats")
    .option('--no-calibrate', 'do not ask the server first how many tokens words have');
}

/** Adds options for the results. */
function defineReports(command: Command): void {
  command
    .option('-o, --output <FILE>', 'the report as JSON; - for standard output, then without the summary')
    .option('--html <FILE>', 'the report as one page with plots')
    .option('--csv <FILE>', 'every request as a line')
    .option('--quiet', 'no progress')
    .option('-y, --yes', 'do not ask before loading a server that is not this machine');
}

function compareCommand(): Command {
  return new Command('compare')
    .description('what changed from one report to another, with 95 % intervals from repeated runs')
    .argument('<A.json>', 'a report of skein bench')
    .argument('<B.json>', 'another')
    .option('--json', 'print the comparison as JSON')
    .option('--html <FILE>', 'both on one page with plots')
    .action(async (a: string, b: string, _: unknown, compare: Command) => {
      const { compareFiles } = await import('./bench-compare.js');
      // --html is an option of bench too, which takes it wherever it is written.
      compareFiles(a, b, compare.optsWithGlobals<CompareFlags>());
    });
}

function gather(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
