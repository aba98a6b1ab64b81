import { Command, CommanderError } from 'commander';
import { memoryProblem } from '../base/address-space.js';
import { messageOf } from '../base/error-text.js';
import { skeinVersion } from '../base/package-info.js';
import { batchCommand } from './commands/batch-command.js';
import { chatCommand } from './commands/chat-command.js';
import { completionCommand } from './commands/completion-command.js';
import { doctorCommand, versionCommand } from './commands/doctor-command.js';
import { InterruptedError } from './commands/interruption.js';
import { mcpCommand } from './commands/mcp-command.js';
import { buildCommand, infoCommand, listCommand, pullCommand, rmCommand } from './commands/model-commands.js';
import { newCommand } from './commands/new-command.js';
import { rankCommand } from './commands/rank-command.js';
import { watchMemory } from './commands/refused-memory.js';
import { runCommand } from './commands/run-command.js';
import { gatewayCommand, serveCommand, workCommand } from './commands/serve-command.js';
import { setupCommand } from './commands/setup-command.js';
import { simulateCommand } from './commands/simulate-command.js';
import { topCommand } from './commands/top-command.js';
import { argumentsOf, usageMessage } from './commands/usage-message.js';
import { UsageError } from './settings/config.js';
import { unknownVariables } from './settings/environment.js';
import { wrapHelp } from './terminal/help.js';
import { outputProblem, watchStandardOutput } from './terminal/standard-output.js';

/** Exit code for a valid command that failed: a missing model, a port in use, too little memory. */
const EXIT_FAILURE = 1;
/**
 * Exit code for an invalid command: an unknown name, a value that an option does not take, a configuration file that
 * cannot be read. Found before any work begins.
 */
const EXIT_USAGE = 2;

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
    .addCommand(mcpCommand())
    .addCommand(buildCommand())
    .addCommand(pullCommand())
    .addCommand(rankCommand())
    .addCommand(listCommand())
    .addCommand(rmCommand())
    .addCommand(infoCommand())
    .addCommand(gatewayCommand())
    .addCommand(workCommand())
    .addCommand(setupCommand())
    .addCommand(newCommand())
    .addCommand(simulateCommand())
    .addCommand(await benchCommand())
    .addCommand(doctorCommand())
    .addCommand(versionCommand())
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
