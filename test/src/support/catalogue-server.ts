import { pull } from '../../../src/hub/pull.js';
import { RemoteModels } from '../../../src/hub/remote-models.js';
import type { ModelLife } from '../../../src/server/answering/model-life.js';
import { Downloads } from '../../../src/serving/catalogue/downloads.js';
import { Measures } from '../../../src/serving/catalogue/measures.js';
import { ModelCatalogue } from '../../../src/serving/catalogue/model-catalogue.js';
import { ReadingSpeed } from '../../../src/serving/catalogue/reading-speed.js';
import type { ModelDirectory } from '../../../src/serving/model-directory.js';
import type { ModelMeasure } from '../../../src/serving/on-demand/model-measure.js';
import { ModelPulls } from '../../../src/serving/on-demand/model-pulls.js';
import { ModelStore } from '../../../src/serving/on-demand/model-store.js';
import type { OnDemandModels } from '../../../src/serving/on-demand/on-demand-models.js';

/** A small model: 1 MB of weights, all of which a token reads. */
export const SMALL: ModelMeasure = {
  generates: true,
  weightBytes: 1_000_000,
  readBytes: 1_000_000,
  cacheBytesPerToken: 100,
  contextTokens: 4096,
};

export interface CatalogueOptions {
  /** The folder of models. */
  folder: string;
  /** Address of the hub. */
  endpoint: string;
  models: ModelDirectory;
  isOffline?: boolean;
  memoryBytes?: number;
  bytesPerSecond?: number;
  measure?: (path: string) => Promise<ModelMeasure>;
  /** Bytes of the disk that another download will take. */
  takenBytes?: number;
  /** Loads a stored model; default: none is ever loaded. */
  borrow?: OnDemandModels['borrow'];
}

/** Models on demand with a catalogue over a folder and a hub. */
export function catalogueLife({
  folder,
  endpoint,
  models,
  isOffline = false,
  memoryBytes = 10e6,
  bytesPerSecond = 20e6,
  measure = async () => SMALL,
  takenBytes = 0,
  borrow = async () => null,
}: CatalogueOptions): ModelLife & { catalogue: ModelCatalogue } {
  const settings = () => ({ endpoint, token: null, cacheFolder: folder, isOffline });
  const store = new ModelStore(folder);
  const pulls = new ModelPulls((repository, on) =>
    pull(repository, {
      settings: settings(),
      revision: 'main',
      retryDelayMs: 1,
      ...on,
      awaitedBytes: () => takenBytes + on.awaitedBytes(),
    }),
  );
  const catalogue = new ModelCatalogue({
    store,
    models,
    downloads: new Downloads(pulls),
    remote: new RemoteModels(settings),
    measures: new Measures(measure),
    speed: new ReadingSpeed(
      async () => bytesPerSecond,
      () => true,
    ),
    memoryBytes,
  });
  const own = { borrow, owns: () => false, unload: async () => {}, expiresAt: () => null };
  return { store, isShared: false, models: own as unknown as OnDemandModels, pulls, catalogue };
}
