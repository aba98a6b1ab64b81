import { closestName } from '../../base/did-you-mean.js';
import { hubSettings } from '../hub/settings.js';
import { removeStored, storedModels } from '../hub/stored-models.js';

/** Runs skein list: the models that were pulled, with their sizes. */
export function listModels({ json = false }: { json?: boolean }): void {
  const { cacheFolder } = hubSettings();
  const models = storedModels(cacheFolder);
  if (json) {
    process.stdout.write(
      `${JSON.stringify(models.map(({ changedMs, ...rest }) => ({ ...rest, changed: new Date(changedMs).toISOString() })))}\n`,
    );
    return;
  }
  if (models.length === 0) {
    process.stdout.write(`No models in ${cacheFolder}. skein pull ORG/NAME downloads one.\n`);
    return;
  }
  const width = Math.max(...models.map(({ id }) => id.length), 'MODEL'.length);
  const rows = models.map(({ id, bytes, changedMs, revisions }) => [
    id.padEnd(width),
    sizeText(bytes).padStart(10),
    new Date(changedMs).toISOString().slice(0, 10),
    revisions.join(', '),
  ]);
  const head = ['MODEL'.padEnd(width), 'SIZE'.padStart(10), 'CHANGED   ', 'REVISIONS'];
  process.stdout.write([head, ...rows].map((row) => `${row.join('  ').trimEnd()}\n`).join(''));
  const sum = models.reduce((bytes, model) => bytes + model.bytes, 0);
  process.stdout.write(`${sizeText(sum)} in ${cacheFolder}\n`);
}

/** Runs skein rm: deletes models that were pulled. All names are looked up before anything is deleted. @throws Error where one is not there */
export function removeModels(names: readonly string[]): void {
  const { cacheFolder } = hubSettings();
  const models = storedModels(cacheFolder);
  const chosen = [...new Set(names)].map((name) => {
    const model = models.find(({ id }) => id === name);
    if (model !== undefined) return model;
    const meant = closestName(
      name,
      models.map(({ id }) => id),
    );
    const hint = meant === null ? 'skein list shows those that are there.' : `did you mean ${meant}?`;
    throw new Error(`There is no model ${name} in ${cacheFolder}; ${hint}`);
  });
  for (const model of chosen) {
    removeStored(model);
    process.stdout.write(`deleted ${model.id}, ${sizeText(model.bytes)}\n`);
  }
}

function sizeText(bytes: number): string {
  if (bytes < 1e6) return `${(bytes / 1e3).toFixed(1)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}
