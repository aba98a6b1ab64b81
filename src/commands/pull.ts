import { DEFAULT_REVISION } from '../hub/local-model.js';
import { pull } from '../hub/pull.js';
import { repositoryOf } from '../hub/repository.js';
import { hubSettings } from '../hub/settings.js';
import { listenForInterruption } from './interruption.js';
import { showPullProgress } from './pull-progress.js';

export interface PullFlags {
  revision?: string;
  json?: boolean;
}

/** Runs skein pull ORG/NAME[:QUANT]: prints the path of the model. @throws UsageError, HubError. */
export async function pullModel(
  name: string,
  { revision = DEFAULT_REVISION, json }: PullFlags,
): Promise<void> {
  const repository = repositoryOf(name);
  const interruption = listenForInterruption(
    'interrupted; what has come is kept, and the same command goes on from there',
  );
  const pulled = await pull(repository, {
    settings: hubSettings(),
    revision,
    onProgress: showPullProgress(process.stderr),
    onWait: () =>
      process.stderr.write(`skein: waiting for another process that downloads ${repository.id}\n`),
    signal: interruption.signal,
  });
  interruption.release();
  process.stdout.write(json ? `${JSON.stringify({ ...pulled, revision })}\n` : `${pulled.path}\n`);
}
