import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { closestName } from '../../base/did-you-mean.js';
import { mustBe, type Values } from '../../base/option-values.js';
import { type BuildOptions, buildEngine } from '../../engine/building/builder.js';
import { EngineError } from '../../engine/building/engine.js';
import type { EngineManifest } from '../../engine/directory/engine-directory.js';
import { localModel } from '../hub/local-model.js';
import { optionOf } from '../options/table.js';
import { UsageError } from '../settings/config.js';
import { showBuildProgress } from './build-progress.js';
import { listenForInterruption } from './interruption.js';
import { showPullProgress } from './pull-progress.js';

export interface BuildFlags {
  output: string;
  weights: string;
  outputWeights: string;
  threads?: string;
  revision?: string;
  draftHead?: boolean;
  mmproj?: string;
  force?: boolean;
  json?: boolean;
}

/** Runs skein build MODEL -o DIR. @throws UsageError, HubError, CheckpointError, EngineError, AddonError. */
export async function build(model: string, flags: BuildFlags): Promise<void> {
  const options: BuildOptions = {
    model,
    outputDirectory: flags.output,
    precision: choiceOf('--weights', flags.weights, optionOf('weights').values),
    outputPrecision: choiceOf('--output-weights', flags.outputWeights, optionOf('outputWeights').values),
    onProgress: showBuildProgress(process.stderr),
  };
  if (flags.threads !== undefined) {
    const threads = Number(flags.threads);
    const { values } = optionOf('threads');
    if (!values.accepts(threads))
      throw new UsageError(`--threads is "${flags.threads}"; it must be ${mustBe(values, threads)}.`);
    options.threads = threads;
  }
  if (flags.draftHead) options.draftHead = true;
  if (flags.mmproj !== undefined) options.mmproj = flags.mmproj;
  if (!flags.force) refuseToReplace(flags.output);
  const interruption = listenForInterruption('interrupted; nothing was written');
  const { signal } = interruption;
  try {
    const onProgress = showPullProgress(process.stderr);
    options.model = await localModel(model, { revision: flags.revision, onProgress, signal });
    const engine = await buildEngine({ ...options, signal });
    const { precision, outputPrecision } = engine.manifest;
    const told = { path: engine.directory, model, weights: precision, outputWeights: outputPrecision };
    process.stdout.write(
      flags.json ? `${JSON.stringify(told)}\n` : `${engine.directory}: ${precision} engine of ${model}\n`,
    );
  } finally {
    interruption.release();
  }
}

/** Refuses to replace an engine unless a flag says so: it may be all that is left of a model. @throws EngineError */
function refuseToReplace(output: string): void {
  const manifest = join(output, 'engine.json');
  if (!existsSync(manifest)) return;
  throw new EngineError(`${output}: there is an engine${sourceOf(manifest)} already; --force replaces it.`);
}

function sourceOf(manifest: string): string {
  try {
    const { source, precision } = JSON.parse(readFileSync(manifest, 'utf8')) as EngineManifest;
    return ` of ${source.path} in ${precision}`;
  } catch {
    return ' (damaged)';
  }
}

function choiceOf(flag: string, value: string, { choices = [], expected }: Values): string {
  if (choices.includes(value)) return value;
  const meant = closestName(value, choices);
  const hint = meant === null ? '' : ` Did you mean ${meant}?`;
  throw new UsageError(`${flag} is "${value}"; it must be ${expected}.${hint}`);
}
