import type { FolderServices } from './folder-source.js';
import type { ModelSource } from './model-source.js';
import type { FoundModel, ServingRepositoryOptions } from './serving-repository.js';

/** The folders of a repository, as it looks at them; code that reads them is imported when that is wanted first. */
export function modelFolders(
  folders: readonly string[],
  services: FolderServices,
): Required<Pick<ServingRepositoryOptions, 'scan' | 'uploads'>> {
  return {
    scan: () => scanFolders(folders, services),
    uploads: (name) => uploadsOf(name, services),
  };
}

async function scanFolders(
  folders: readonly string[],
  services: FolderServices,
): Promise<ReadonlyMap<string, FoundModel>> {
  const { scanRepositories } = await import('../../../models/repository/repository-scan.js');
  const { FolderSource } = await import('./folder-source.js');
  const scanned = await scanRepositories(folders);
  return new Map(
    Array.from(scanned, ([name, model]) => [
      name,
      { source: new FolderSource(model, services), stamp: model.stamp },
    ]),
  );
}

/** A model without a folder, all of whose files come with a load. */
function uploadsOf(name: string, services: FolderServices): ModelSource {
  const problem = 'it has no folder in a model repository; a load of it brings its files';
  const scanned = { name, directory: '', versions: [], stamp: '', filesStamp: '', problem };
  return {
    plan: async (endpoint, asked) => {
      const { FolderSource } = await import('./folder-source.js');
      return new FolderSource(scanned, services).plan(endpoint, asked);
    },
  };
}
