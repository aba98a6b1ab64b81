import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { retell } from '../../../base/skein-error.js';
import { writeReasonOfCode } from '../../../base/system-problem.js';
import type { CloseOptions } from '../../../host/in-process-host.js';
import { ModelConfigError } from '../../../models/repository/model-config-error.js';
import type { ScannedModel } from '../../../models/repository/repository-scan.js';
import { isVersion } from '../../../models/repository/versions.js';
import type { LoadPlan, ServedVersion } from './model-source.js';

/** Files of a model that came with a request, in a folder of their own for as long as a version of them runs. */
export interface UploadedModel {
  model: ScannedModel;
  /** Plans a load of them: the folder goes when the last of its versions has ended, none could be started, or the plan fails. */
  plan(make: () => LoadPlan): Promise<LoadPlan>;
}

/** Writes the files to a temporary folder. @param files contents by path within the model's folder @throws ModelConfigError */
export async function uploadedModel(
  name: string,
  files: ReadonlyMap<string, Uint8Array>,
): Promise<UploadedModel> {
  const root = await mkdtemp(join(tmpdir(), 'skein-model-'));
  const directory = join(root, name);
  const versions = new Set<string>();
  try {
    for (const [path, content] of files) {
      const [first = ''] = path.split('/');
      if (isVersion(first) && path.includes('/')) versions.add(first);
      const file = join(directory, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, content);
    }
    if (versions.size === 0) {
      throw new ModelConfigError(
        'the files of the request have no version: a path such as file:1/model.onnx is expected',
      );
    }
  } catch (error) {
    await rm(root, { recursive: true, force: true });
    throw notWritten(error);
  }
  const model = { name, directory, versions: [...versions], stamp: '', filesStamp: '', problem: null };
  return { model, plan: (make) => planned(make, root) };
}

/** What its client may know of an error of the disk: not where the server has its temporary files. */
function notWritten(error: unknown): unknown {
  if (error instanceof ModelConfigError) return error;
  const reason = writeReasonOfCode(error) ?? 'the system refuses it';
  return new ModelConfigError(`the files of the request cannot be written: ${reason}`, { cause: error });
}

/** Names the files of an error as the client has named them, within the model's folder. */
function withoutFolder(error: unknown, root: string): unknown {
  if (!(error instanceof Error) || !error.message.includes(root)) return error;
  return retell(error, error.message.replaceAll(`${root}/`, '').replaceAll(root, '.'));
}

async function planned(make: () => LoadPlan, root: string): Promise<LoadPlan> {
  const remove = () => rm(root, { recursive: true, force: true });
  let plan: LoadPlan;
  try {
    plan = make();
  } catch (error) {
    await remove();
    throw withoutFolder(error, root);
  }
  const left = new Set(plan.versions);
  const leave = async (version: string) => {
    left.delete(version);
    if (left.size === 0) await remove();
  };
  const start = async (version: string): Promise<ServedVersion> => {
    try {
      const { model, served, sequences, isStuck, close } = await plan.start(version);
      const closeAll = async (options?: CloseOptions) => {
        await close(options);
        await leave(version);
      };
      return { model, served, sequences, isStuck, close: closeAll };
    } catch (error) {
      await leave(version);
      throw withoutFolder(error, root);
    }
  };
  return { ...plan, start };
}
