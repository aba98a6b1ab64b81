import { Command, Option } from 'commander';
import { OPTIONS } from '../options/table.js';
import { type Config, loadConfig } from '../settings/config.js';
import { flagsInGroups } from '../settings/flags.js';
import { checkInstructionSet, INSTRUCTION_SETS } from '../settings/instruction-set-variable.js';
import { gatewayOptions, workOptions } from '../settings/queue-commands.js';
import { helpBehind } from '../terminal/help.js';

const SERVE_HELP = `
For each option the first of these counts: flag, environment variable, --config FILE, default.

Further variables:
  SKEIN_CONFIG   the file of --config
  SKEIN_ISA      use another instruction set than the best one: ${INSTRUCTION_SETS.join(', ')}
                 (avx512bf16 where amx is the best: quantised weights generate faster for one to four requests at a time)
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

export function serveCommand(): Command {
  const command = new Command('serve').description('serve a model with the OpenAI API');
  for (const flag of flagsInGroups(OPTIONS.filter(({ isForServe }) => isForServe))) command.addOption(flag);
  command.addOption(configOption());
  return helpBehind(command, SERVE_HELP).action(async (flags: Record<string, unknown>) => {
    checkInstructionSet(process.env.SKEIN_ISA);
    const file = typeof flags.config === 'string' ? flags.config : undefined;
    const config = loadConfig({ flags, environment: process.env, file });
    performance.mark('skein: options read');
    // Each command imports what it needs when it runs.
    const { serve } = await import('./serve.js');
    await serve(config);
  });
}

export function gatewayCommand(): Command {
  const command = new Command('gateway').description(
    'serve the models of workers, which may be on other machines, by way of a NATS server',
  );
  for (const flag of flagsInGroups(gatewayOptions())) command.addOption(flag);
  command.addOption(configOption());
  return helpBehind(command, QUEUE_HELP).action(async (flags: Record<string, unknown>) => {
    const config = configOf(flags);
    const { gateway } = await import('./gateway.js');
    await gateway(config);
  });
}

export function workCommand(): Command {
  const command = new Command('work').description('run a model for gateways, by way of a NATS server');
  for (const flag of flagsInGroups(workOptions())) command.addOption(flag);
  command.addOption(configOption());
  return helpBehind(command, QUEUE_HELP).action(async (flags: Record<string, unknown>) => {
    checkInstructionSet(process.env.SKEIN_ISA);
    const config = configOf(flags);
    const { work } = await import('./work.js');
    await work(config);
  });
}

function configOf(flags: Record<string, unknown>): Config {
  const file = typeof flags.config === 'string' ? flags.config : undefined;
  return loadConfig({ flags, environment: process.env, file });
}

export function configOption(): Option {
  return new Option('--config <FILE>', 'JSON or YAML file with options (SKEIN_CONFIG)');
}
