import { Command, CommanderError, Option } from 'commander';
import { memoryProblem } from '../base/address-space.js';
import { hintOf } from '../base/did-you-mean.js';
import { messageOf } from '../base/error-text.js';
import { skeinVersion } from '../base/package-info.js';
import { asClause } from '../base/sentences.js';
import type { BatchFlags } from './commands/batch.js';
import { BATCH_HELP } from './commands/batch-help.js';
import type { BuildFlags } from './commands/build.js';
import { chatCommand } from './commands/chat-command.js';
import { completionCommand } from './commands/completion-command.js';
import type { InfoFlags } from './commands/info.js';
import { InterruptedError } from './commands/interruption.js';
import type { PullFlags } from './commands/pull.js';
import type { RankFlags } from './commands/rank.js';
import { watchMemory } from './commands/refused-memory.js';
import { runCommand } from './commands/run-command.js';
import type { SetupFlags } from './commands/setup.js';
import type { SimulateFlags } from './commands/simulate.js';
import { SIMULATE_HELP } from './commands/simulate-help.js';
import { topCommand } from './commands/top-command.js';
import { refusalOfFlag } from './options/old-names.js';
import { OPTIONS, type OptionName, optionOf } from './options/table.js';
import { type Config, loadConfig, UsageError } from './settings/config.js';
import { unknownVariables } from './settings/environment.js';
import { flagsInGroups, flagsOf } from './settings/flags.js';
import { checkInstructionSet, INSTRUCTION_SETS } from './settings/instruction-set-variable.js';
import { gatewayOptions, workOptions } from './settings/queue-commands.js';
import { helpBehind, wrapHelp } from './terminal/help.js';
import { outputProblem, watchStandardOutput } from './terminal/standard-output.js';

/** Exit code for a valid command that failed: a missing model, a port in use, too little memory. */
const EXIT_FAILURE = 1;
/**
 * Exit code for an invalid command: an unknown name, a value that an option does not take, a configuration file that
 * cannot be read. Found before any work begins.
 */
const EXIT_USAGE = 2;

const SERVE_HELP = `
For each option the first of these counts: flag, environment variable, --config FILE, default.

Further variables:
  SKEIN_CONFIG   the file of --config
  SKEIN_ISA      use another instruction set than the best one: ${INSTRUCTION_SETS.join(', ')}
                 (amx runs only where it is named: no processor that has it has been measured)
  SKEIN_DEBUG    1: print the stack with each error of the command line

Exit codes: 0 after a requested shutdown, 1 for a failure, 2 for a name, a value or a configuration file that is not
understood.
`;

const QUEUE_HELP = `
For each option the first of these counts: flag, environment variable, --config FILE, default.

Secrets are in files, or in variables:
  SKEIN_NATS_PASSWORD   the password of --nats-user
  SKEIN_NATS_TOKEN      a token

Exit codes: as those of skein serve.
`;

const PULL_HELP = `
Models are stored in the cache that all tools of the hub share; serve and build take the same names. Variables:
  HF_TOKEN         a token, for models that are not public
  HF_ENDPOINT      another hub (default: https://huggingface.co)
  HF_HUB_OFFLINE   1: serve and build use only the cache, without network access
  HF_HOME, HF_HUB_CACHE   folder of the cache `;

const RANK_HELP = `
Rank 0 is a server (skein serve --ranks-address HOST:PORT --ranks-secret-file FILE), or a program with a GptManager. All
ranks need the same model in the same precision, the same version of skein, and the same sizes. If one of them ends, all
meet again; this command ends when rank 0 shuts down.

  skein serve --model MODEL --pipeline-parallel-size 2 \\
    --ranks-address 10.0.0.1:7000 --ranks-secret-file FILE
  skein rank MODEL --rank 1 --size 2 --pipeline-parallel-size 2 \\
    --address 10.0.0.1:7000 --secret-file FILE

Exit codes: 0 after the group's end, 1 for a failure, 2 for a value that is not understood.
`;

const SETUP_HELP = `
What there is:
  tensorflow   TensorFlow, for --executor tensorflow: without --from that of the active venv, or of the python in the
               PATH, is linked (pip install tensorflow-cpu, or tensorflow[and-cuda] for a GPU); the binding is compiled,
               for which g++, make and python3 are needed
  onnx         onnxruntime-node, for the ONNX models of a --model-repository
  nats         @nats-io/transport-node and @nats-io/jetstream, for skein gateway and skein work
  tracing      the packages of OpenTelemetry, for --trace-endpoint and --tracing
  zeromq       zeromq, for --kv-events-endpoint

All are put into the cache of skein (SKEIN_CACHE_DIR); a project's own package goes before it.
`;

function serveCommand(): Command {
  const command = new Command('serve').description('serve a model with the OpenAI API');
  for (const flag of flagsInGroups(OPTIONS.filter(({ isForServe }) => isForServe))) command.addOption(flag);
  command.addOption(configOption());
  return helpBehind(command, SERVE_HELP).action(async (flags: Record<string, unknown>) => {
    checkInstructionSet(process.env.SKEIN_ISA);
    const file = typeof flags.config === 'string' ? flags.config : undefined;
    const config = loadConfig({ flags, environment: process.env, file });
    performance.mark('skein: options read');
    // Each command imports what it needs when it runs.
    const { serve } = await import('./commands/serve.js');
    await serve(config);
  });
}

function gatewayCommand(): Command {
  const command = new Command('gateway').description(
    'serve the models of workers, which may be on other machines, by way of a NATS server',
  );
  for (const flag of flagsInGroups(gatewayOptions())) command.addOption(flag);
  command.addOption(configOption());
  return helpBehind(command, QUEUE_HELP).action(async (flags: Record<string, unknown>) => {
    const config = configOf(flags);
    const { gateway } = await import('./commands/gateway.js');
    await gateway(config);
  });
}

function workCommand(): Command {
  const command = new Command('work').description('run a model for gateways, by way of a NATS server');
  for (const flag of flagsInGroups(workOptions())) command.addOption(flag);
  command.addOption(configOption());
  return helpBehind(command, QUEUE_HELP).action(async (flags: Record<string, unknown>) => {
    checkInstructionSet(process.env.SKEIN_ISA);
    const config = configOf(flags);
    const { work } = await import('./commands/work.js');
    await work(config);
  });
}

function configOf(flags: Record<string, unknown>): Config {
  const file = typeof flags.config === 'string' ? flags.config : undefined;
  return loadConfig({ flags, environment: process.env, file });
}

function configOption(): Option {
  return new Option('--config <FILE>', 'JSON or YAML file with options (SKEIN_CONFIG)');
}

function buildCommand(): Command {
  return new Command('build')
    .description('turn a model into an engine directory')
    .argument('<MODEL>', 'a Hugging Face directory, a GGUF file, a folder with one, or ORG/NAME[:QUANT]')
    .requiredOption('-o, --output <DIR>', 'the engine directory to write; it has to be given')
    .option(
      '--weights <PRECISION>',
      `precision of the weights: ${listed('weights')}; stored: the numbers of the checkpoint`,
      'auto',
    )
    .option(
      '--output-weights <PRECISION>',
      `precision of the embedding and the output layer: ${listed('outputWeights')}`,
      'auto',
    )
    .option('--threads <N>', 'threads that convert the weights (default: one for each physical core)')
    .option('--revision <REVISION>', 'branch, tag or commit of a model from the hub')
    .option('--force', 'replace an existing engine')
    .option('--json', 'print path and precisions as JSON')
    .action(async (model: string, flags: BuildFlags) => {
      const { build } = await import('./commands/build.js');
      await build(model, flags);
    });
}

/** The values of an option in a sentence: "auto, f32 or bf16". */
function listed(name: OptionName): string {
  const choices = optionOf(name).values.choices ?? [];
  return `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`;
}

function batchCommand(): Command {
  const command = new Command('batch')
    .description('answer the requests of a file in the OpenAI batch format')
    .argument('<IN.jsonl>', 'the requests, one per line, with custom_id, method, url and body')
    .argument('<OUT.jsonl>', 'the answers; if the file has some already, the batch continues')
    .option('--error-file <FILE>', 'file for failed requests (default: OUT.errors.jsonl)')
    .option('--concurrency <N>', 'requests that run at once (default: twice --max-active-requests)')
    .option('--restart', 'begin the batch again, and overwrite the output')
    .option('--json', 'print the summary as JSON')
    .addOption(configOption());
  for (const flag of flagsInGroups(OPTIONS.filter(({ isForBatch }) => isForBatch))) command.addOption(flag);
  type Flags = BatchFlags & { config?: string };
  return helpBehind(command, BATCH_HELP).action(async (input: string, output: string, flags: Flags) => {
    checkInstructionSet(process.env.SKEIN_ISA);
    const { errorFile, concurrency, restart, json, config: file, ...options } = flags;
    const config = loadConfig({ flags: options, environment: process.env, file });
    const { batch } = await import('./commands/batch.js');
    process.exitCode = await batch(input, output, { errorFile, concurrency, restart, json }, config);
  });
}

function pullCommand(): Command {
  const command = new Command('pull')
    .description('download a model from the Hugging Face hub, or update it')
    .argument('<MODEL>', 'ORG/NAME, or ORG/NAME:QUANT for one of its GGUF files')
    .option('--revision <REVISION>', 'a branch, a tag or a commit (default: main)')
    .option('--json', 'print commit, path and bytes as JSON');
  return helpBehind(command, PULL_HELP).action(async (model: string, flags: PullFlags) => {
    const { pullModel } = await import('./commands/pull.js');
    await pullModel(model, flags);
  });
}

function rankCommand(): Command {
  const command = new Command('rank')
    .description('join a server on another machine, or a program, and run a part of its model')
    .argument('<MODEL>', 'the model that rank 0 has, in every form that serve --model takes')
    .requiredOption('--address <HOST:PORT>', 'address of rank 0, or the path where ranks of one machine meet')
    .requiredOption('--rank <R>', 'number of this rank, from 1')
    .requiredOption('--size <N>', 'number of ranks, rank 0 included')
    .option('--secret-file <FILE>', 'file with the secret that all ranks have; needed with HOST:PORT');
  for (const name of ['tensorParallelSize', 'pipelineParallelSize', 'rankTimeoutSeconds'] as const)
    command.addOption(flagsOf(name)[0]!);
  command.option(
    '--join-timeout-seconds <N>',
    'how long ranks wait for one another at the start (default: 120)',
  );
  for (const name of ['weights', 'outputWeights', 'revision', 'cacheDir'] as const)
    command.addOption(flagsOf(name)[0]!);
  return helpBehind(command, RANK_HELP).action(async (model: string, flags: RankFlags) => {
    checkInstructionSet(process.env.SKEIN_ISA);
    const { rank } = await import('./commands/rank.js');
    await rank(model, flags);
  });
}

function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the models that were downloaded from the Hugging Face hub')
    .option('--json', 'print names, folders and bytes as JSON')
    .action(async (flags: { json?: boolean }) => {
      const { listModels } = await import('./commands/stored-models.js');
      listModels(flags);
    });
}

function rmCommand(): Command {
  return new Command('rm')
    .description('delete models that were downloaded from the Hugging Face hub')
    .argument('<MODEL...>', 'ORG/NAME, as skein list shows it')
    .action(async (models: string[]) => {
      const { removeModels } = await import('./commands/stored-models.js');
      removeModels(models);
    });
}

function infoCommand(): Command {
  return new Command('info')
    .description('show the architecture of a model, its memory on this machine and how many sequences fit')
    .argument('<MODEL>', 'a model, in every form that serve --model takes')
    .option('--length <TOKENS>', 'length of the sequences that should fit')
    .addOption(flagsOf('executor')[0]!)
    .addOption(flagsOf('kvCacheDtype')[0]!)
    .option('--revision <REVISION>', 'branch, tag or commit of a model from the hub')
    .option('--json', 'print the result as JSON')
    .action(async (model: string, flags: InfoFlags) => {
      checkInstructionSet(process.env.SKEIN_ISA);
      const { info } = await import('./commands/info.js');
      await info(model, flags);
    });
}

function setupCommand(): Command {
  const command = new Command('setup')
    .description('install what an executor, a backend or tracing needs beside this package')
    .argument('<WHAT>', 'tensorflow, onnx, nats, tracing or zeromq')
    .option(
      '--from <PATH>',
      'tensorflow: the libtensorflow to link: a site-packages folder, a venv, a python',
    )
    .option('--download', "tensorflow: take the package's own download of libtensorflow instead")
    .option(
      '--package <NAME>',
      'tensorflow: tfjs-node-gpu, or tfjs-node in its place (default: tfjs-node-gpu)',
    )
    .option('--force', 'make it anew where it is there')
    .option('--quiet', 'say nothing but where it lies')
    .option('--json', 'print folder and versions as JSON');
  return helpBehind(command, SETUP_HELP).action(async (what: string, flags: SetupFlags) => {
    const { setup } = await import('./commands/setup.js');
    await setup(what, flags);
  });
}

function simulateCommand(): Command {
  const command = new Command('simulate')
    .description(
      'run the schedulers and the KV block manager, a dynamic batcher, or many workers, without a model',
    )
    .argument('[FILE.json]', 'policy, pool and requests')
    .option('--json', 'print every iteration, or what the batcher did, as JSON instead of a chart')
    .option('--batcher <CONFIG>', "in place of FILE.json: a model's folder, its config file, or JSON")
    .option('--workers <N>', 'in place of FILE.json: so many workers behind a router, or a work queue')
    .option('--rate <N>', 'requests a second; default 1000, with --workers 1 for each of them')
    .addOption(
      new Option(
        '--arrivals <KIND>',
        'when requests arrive: at random times, or evenly; default poisson',
      ).choices(['poisson', 'constant']),
    )
    .option('--requests <N>', 'requests to draw; default 10000')
    .option('--rows <LIST>', 'rows of a request, drawn from a list such as 1,1,4; default 1')
    .option('--trace <FILE>', 'requests in place of drawn ones: a JSON object a line')
    .option('--batch-us <N>', 'microseconds that a batch takes; default 1000')
    .option('--row-us <N>', 'microseconds more for each of its rows; default 100')
    .option('--instances <N>', 'instances of the model of --batcher; default: as its configuration has them')
    .option(
      '--routing <LIST>',
      'random, fewest-requests, queue, queue-cache, cache with commas between them; default all',
    )
    .option('--prefixes <N>', 'beginnings that conversations share; default 5 for each worker')
    .option('--prefix-tokens <N>', 'tokens of each; default 1024')
    .option('--turns <N>', 'turns of a conversation; default 3')
    .option('--own-tokens <N>', 'tokens of a turn; default 128')
    .option('--new-tokens <N>', 'tokens of an answer; default 64')
    .option('--blocks <N>', "blocks of a worker's cache; default 600")
    .option('--tokens-per-block <N>', 'tokens of a block of the cache; default 32')
    .option('--max-active-requests <N>', 'requests that a worker has at once; default 64')
    .option('--iteration-us <N>', 'microseconds of an iteration; default 1000')
    .option('--context-token-us <N>', 'microseconds more for each prompt token in it; default 800')
    .option('--generation-us <N>', 'microseconds more for each sequence in it that generates; default 3000')
    .option('--deaths <N>', 'workers that die at random times; default 0')
    .option('--rolling-update <N>', 'replace all workers, so many at once; default: none')
    .option('--restart-seconds <N>', 'time until a worker is there again; default 30')
    .option('--seed <N>', 'of what is drawn: one seed gives the same run again; default 1');
  return helpBehind(command, SIMULATE_HELP).action(async (path: string | undefined, flags: SimulateFlags) => {
    const { simulateCommandLine } = await import('./commands/simulate.js');
    await simulateCommandLine(path, flags);
  });
}

async function benchCommand(): Promise<Command> {
  const command = new Command('bench').description(
    'load an OpenAI-compatible server and report latencies and throughput',
  );
  // Defining the many options of bench would slow the start of every other command.
  const [, , first, second] = process.argv;
  if (first === 'bench' || first === 'completion' || (first === 'help' && second === 'bench'))
    (await import('./commands/bench-command.js')).defineBench(command);
  return command;
}

async function program(): Promise<Command> {
  const root = new Command('skein')
    .description('In-flight batching LLM serving for Node.js')
    .version(`skein ${skeinVersion()}`)
    .addCommand(serveCommand())
    .addCommand(runCommand())
    .addCommand(chatCommand())
    .addCommand(topCommand())
    .addCommand(batchCommand())
    .addCommand(buildCommand())
    .addCommand(pullCommand())
    .addCommand(rankCommand())
    .addCommand(listCommand())
    .addCommand(rmCommand())
    .addCommand(infoCommand())
    .addCommand(gatewayCommand())
    .addCommand(workCommand())
    .addCommand(setupCommand())
    .addCommand(simulateCommand())
    .addCommand(await benchCommand())
    .addCommand(completionCommand());
  root.hook('preAction', () => {
    for (const line of unknownVariables(process.env)) process.stderr.write(`skein: ${line}\n`);
  });
  for (const command of [root, ...root.commands, ...root.commands.flatMap(({ commands }) => commands)]) {
    command.exitOverride().showSuggestionAfterError(true).allowExcessArguments(false);
    command.configureOutput({ outputError: () => {} });
    wrapHelp(command);
  }
  return root;
}

/** Commander's sentence, with a list of the options where it suggests none. */
function usageMessage(error: CommanderError, root: Command): string {
  const message = error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
  const command = root.commands.find((candidate) => candidate.name() === process.argv[2]) ?? root;
  const typed = /'(-[^']*)'/.exec(message)?.[1] ?? '';
  if (error.code === 'commander.unknownOption') {
    const refusal = refusalOfFlag(
      typed,
      command.options.map(({ long }) => long ?? ''),
    );
    if (refusal !== null) return refusal;
  }
  const visible = command.options.filter((option) => !option.hidden).map((option) => option.long ?? '');
  const synonym = SYNONYMS[typed.replace(/=.*$/s, '')];
  if (error.code === 'commander.unknownOption' && synonym !== undefined && visible.includes(synonym)) {
    return `Unknown option '${typed}'; did you mean ${synonym}?`;
  }
  const sentence = message.charAt(0).toUpperCase() + message.slice(1);
  if (message.includes('Did you mean'))
    return sentence.replace(/ \(Did you mean (.*)\?\)$/, '; did you mean $1?');
  if (error.code === 'commander.unknownCommand' || error.code === 'commander.help') {
    return `${sentence}; commands: ${root.commands.map((command) => command.name()).join(', ')}.`;
  }
  // Some sentences of commander end with a full stop, others do not.
  if (error.code !== 'commander.unknownOption') {
    return `${asClause(sentence)}. See skein ${command.name()} --help.`;
  }
  return `${sentence}; ${hintOf(typed, visible, `skein ${command.name()} --help`)}`;
}

/** Flags by which one command calls what another has too. */
const SYNONYMS: Readonly<Record<string, string>> = {
  '--lora': '--adapter',
  '--lora-modules': '--adapter',
  '--adapter': '--lora',
};

/**
 * The arguments as they are parsed. Commander shows a whole help where the name in `skein help NAME` or
 * `skein bench NAME --help` is none; without the help in it, either ends as it does without: with a sentence.
 */
function argumentsOf(root: Command): string[] {
  const given = process.argv.slice(2);
  const [first, second] = given;
  if (second === undefined || second.startsWith('-')) return given;
  if (first === 'help' && second !== 'help' && !isCommandOf(root, second)) return [second];
  if (first === 'bench' && /^[a-z]+$/.test(second) && second !== 'help') {
    const bench = root.commands.find((command) => command.name() === 'bench')!;
    if (!isCommandOf(bench, second)) return given.filter((one) => one !== '--help' && one !== '-h');
  }
  return given;
}

function isCommandOf({ commands }: Command, name: string): boolean {
  return commands.some((command) => command.name() === name);
}

/** Milliseconds in which a process ends by itself once its command has failed. */
const EXIT_AFTER_MS = 2_000;

async function main(): Promise<number> {
  const root = await program();
  try {
    await root.parseAsync(argumentsOf(root), { from: 'user' });
    const problem = await outputProblem();
    if (problem !== null) throw new Error(problem);
    // A command that succeeded may have set its own exit code.
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      // Without a command commander prints the help itself.
      if (error.code !== 'commander.help') process.stderr.write(`skein: ${usageMessage(error, root)}\n`);
      return EXIT_USAGE;
    }
    if (error instanceof InterruptedError) {
      if (error.message !== '') process.stderr.write(`skein: ${error.message}\n`);
      return error.exitCode;
    }
    const message = memoryProblem(error) ?? messageOf(error);
    process.stderr.write(`skein: ${message}\n`);
    if (process.env.SKEIN_DEBUG && error instanceof Error) process.stderr.write(`${error.stack}\n`);
    return error instanceof UsageError ? EXIT_USAGE : EXIT_FAILURE;
  }
}

watchStandardOutput();
watchMemory();
process.exitCode = await main();
// What a failed command has left open, such as a connection to something that never answers, does not hold the process.
if (process.exitCode !== 0) setTimeout(() => process.exit(), EXIT_AFTER_MS).unref();
