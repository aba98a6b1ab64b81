import { Command } from 'commander';
import { flagsOf } from '../settings/flags.js';
import { checkInstructionSet } from '../settings/instruction-set-variable.js';
import { helpBehind } from '../terminal/help.js';
import type { RankFlags } from './rank.js';

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

export function rankCommand(): Command {
  const command = new Command('rank')
    .description('join a server on another machine, or a program, and run a part of its model')
    .argument('<MODEL>', 'the model that rank 0 has, in every form that serve --model takes')
    .requiredOption('--address <HOST:PORT>', 'address of rank 0, or the path where ranks of one machine meet')
    .requiredOption('--rank <R>', 'number of this rank, from 1')
    .requiredOption('--size <N>', 'number of ranks, rank 0 included')
    .option('--secret-file <FILE>', 'file with the secret that all ranks have; needed with HOST:PORT');
  for (const name of ['tensorParallelSize', 'pipelineParallelSize', 'rankTimeoutSeconds', 'threads'] as const)
    command.addOption(flagsOf(name)[0]!);
  command.option(
    '--join-timeout-seconds <N>',
    'how long ranks wait for one another at the start (default: 120)',
  );
  for (const name of ['weights', 'outputWeights', 'revision', 'cacheDir'] as const)
    command.addOption(flagsOf(name)[0]!);
  return helpBehind(command, RANK_HELP).action(async (model: string, flags: RankFlags) => {
    checkInstructionSet(process.env.SKEIN_ISA);
    const { rank } = await import('./rank.js');
    await rank(model, flags);
  });
}
