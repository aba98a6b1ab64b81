import { Command } from 'commander';
import { type OptionName, optionOf } from '../options/table.js';
import { flagsOf } from '../settings/flags.js';
import { checkInstructionSet } from '../settings/instruction-set-variable.js';
import { helpBehind } from '../terminal/help.js';
import type { BuildFlags } from './build.js';
import type { InfoFlags } from './info.js';
import type { PullFlags } from './pull.js';

const PULL_HELP = `
Models are stored in the cache that all tools of the hub share; serve and build take the same names. Variables:
  HF_TOKEN         a token, for models that are not public
  HF_ENDPOINT      another hub (default: https://huggingface.co)
  HF_HUB_OFFLINE   1: serve and build use only the cache, without network access
  HF_HOME, HF_HUB_CACHE   folder of the cache `;

export function buildCommand(): Command {
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
    .option(
      '--draft-head',
      'with the head by which the model drafts tokens (speculation by mtp), which it must have',
    )
    .addOption(flagsOf('mmproj')[0]!)
    .option('--threads <N>', 'threads that convert the weights (default: one for each physical core)')
    .option('--revision <REVISION>', 'branch, tag or commit of a model from the hub')
    .option('--force', 'replace an existing engine')
    .option('--json', 'print path and precisions as JSON')
    .action(async (model: string, flags: BuildFlags) => {
      const { build } = await import('./build.js');
      await build(model, flags);
    });
}

/** The values of an option in a sentence: "auto, f32 or bf16". */
function listed(name: OptionName): string {
  const choices = optionOf(name).values.choices ?? [];
  return `${choices.slice(0, -1).join(', ')} or ${choices.at(-1)}`;
}

export function pullCommand(): Command {
  const command = new Command('pull')
    .description('download a model from the Hugging Face hub, or update it')
    .argument('<MODEL>', 'ORG/NAME, or ORG/NAME:QUANT for one of its GGUF files')
    .option('--revision <REVISION>', 'a branch, a tag or a commit (default: main)')
    .option('--json', 'print commit, path and bytes as JSON');
  return helpBehind(command, PULL_HELP).action(async (model: string, flags: PullFlags) => {
    const { pullModel } = await import('./pull.js');
    await pullModel(model, flags);
  });
}

export function listCommand(): Command {
  return new Command('list')
    .alias('ls')
    .description('list the models that were downloaded from the Hugging Face hub')
    .option('--json', 'print names, folders and bytes as JSON')
    .action(async (flags: { json?: boolean }) => {
      const { listModels } = await import('./stored-models.js');
      listModels(flags);
    });
}

export function rmCommand(): Command {
  return new Command('rm')
    .description('delete models that were downloaded from the Hugging Face hub')
    .argument('<MODEL...>', 'ORG/NAME, as skein list shows it')
    .action(async (models: string[]) => {
      const { removeModels } = await import('./stored-models.js');
      removeModels(models);
    });
}

export function infoCommand(): Command {
  return new Command('info')
    .description('show the architecture of a model, its memory on this machine and how many sequences fit')
    .argument('<MODEL>', 'a model, in every form that serve --model takes')
    .option('--length <TOKENS>', 'length of the sequences that should fit')
    .addOption(flagsOf('executor')[0]!)
    .addOption(flagsOf('kvCacheDtype')[0]!)
    .addOption(flagsOf('mmproj')[0]!)
    .option('--revision <REVISION>', 'branch, tag or commit of a model from the hub')
    .option('--json', 'print the result as JSON')
    .action(async (model: string, flags: InfoFlags) => {
      checkInstructionSet(process.env.SKEIN_ISA);
      const { info } = await import('./info.js');
      await info(model, flags);
    });
}
