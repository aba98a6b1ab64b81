import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { sharedCaches, statefulLayers, unevenLayers } from '../../engine/executors/cache-layers.js';
import { RankPlanError } from '../../engine/sharding/rank-shape.js';
import { splitPlan } from '../../engine/sharding/split-plan.js';
import {
  architectures,
  encoderArchitectures,
  namesOfArchitecture,
  planNetwork,
} from '../../models/architectures/index.js';
import type { Checkpoint } from '../../models/checkpoints/checkpoint.js';
import type { JsonObject } from '../../models/checkpoints/file-reading.js';
import { configOfHuggingFace } from '../../models/checkpoints/huggingface-config.js';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';
import { unwrapConfig } from '../../models/checkpoints/wrappers.js';
import type { ModelConfig } from '../../models/model-config.js';
import { markdownTable } from '../support/markdown-table.js';
import { FAMILY_FACTS } from './families.js';
import type { PublishedModel } from './published-models.js';

const TESTS = new URL('../../test/', import.meta.url);
const json = (name: string) => JSON.parse(readFileSync(new URL(name, TESTS), 'utf8'));

/** A model and what became of its headers: see openHeaders. */
export interface OpenedModel {
  model: PublishedModel;
  opened: Checkpoint | string;
}

/** A tiny model that tests compare with transformers. */
interface TinyModel {
  config: ModelConfig;
  /** Whether it is compared as a GGUF too, by llama.cpp's converter. */
  gguf: boolean;
}

/** Tables of models by the names of their sections: those of a user's page, and those of what was checked. */
export const MODEL_DOCUMENTS = {
  'docs/models.md': (opened: readonly OpenedModel[]) => ({
    families: familiesTable(),
    refused: refusedTable(opened, (names, architecture) => [names, architecture]),
  }),
  'docs/lab/models.md': (opened: readonly OpenedModel[]) => ({
    checks: checksTable(opened),
    refused: refusedTable(opened, (names, architecture, reason) => [names, architecture, reason]),
  }),
} as const;

function familiesTable(): string {
  const tiny = tinyModels();
  const rows = Object.entries(FAMILY_FACTS).map(([family, { models, gguf: shared }]) => {
    const { huggingFace, gguf: own } = namesOfArchitecture(family);
    const gguf = shared === undefined ? own : [...own, shared];
    const checked = tiny.find(({ config }) => config.architecture === family);
    return [
      family,
      code(huggingFace),
      gguf.length === 0 ? 'no' : code(gguf),
      checked === undefined ? 'not checked' : executorsOf(checked.config),
      models,
    ];
  });
  const head = ['family', '`architectures` of config.json', 'GGUF', 'executors', 'models'];
  return markdownTable(head, rows, head.length);
}

function checksTable(opened: readonly OpenedModel[]): string {
  const tiny = tinyModels();
  const rows = Object.entries(FAMILY_FACTS).map(([family, { since }]) => {
    const checked = tiny.filter(({ config }) => config.architecture === family);
    return [family, since, checksOf(checked, opened, family)];
  });
  return markdownTable(['family', 'since', 'checked by'], rows, 3);
}

const code = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');

function checksOf(tiny: readonly TinyModel[], opened: readonly OpenedModel[], family: string): string {
  const published = opened.filter(
    ({ opened }) => typeof opened !== 'string' && opened.config.architecture === family,
  );
  const ggufs = tiny.filter(({ gguf }) => gguf).length;
  const parts = [
    `${tiny.length} tiny`,
    ...(ggufs > 0 ? [`${ggufs} GGUF`] : []),
    ...published.map(({ model }) => nameOf(model)),
  ];
  return parts.join(', ');
}

const nameOf = ({ id }: PublishedModel) => id.slice(id.indexOf('/') + 1);

/** Executors that run a network; ranks may share its layers or deal them. */
function executorsOf(config: ModelConfig): string {
  const plan = planNetwork(config);
  const refusals = [statefulLayers, unevenLayers, sharedCaches];
  const names = refusals.every((of) => of(plan, 'tensorflow') === null) ? 'all' : 'native, wasm';
  const tensors = plan.weights.map(({ name, rows, columns }) => ({ name, byteLength: rows * columns * 2 }));
  const sharedBy = (tensorParallelSize: number, pipelineParallelSize: number) => {
    try {
      splitPlan({ plan, tensors: tensors as never }, { tensorParallelSize, pipelineParallelSize }, 0);
      return true;
    } catch (error) {
      if (error instanceof RankPlanError) return false;
      throw error;
    }
  };
  if (sharedBy(2, 1)) return names;
  return `${names}; ${sharedBy(1, 2) ? 'pipeline ranks' : 'no ranks'}`;
}

/** Tiny models of test/fixtures that have a golden, and those that test/goldens/families.json describes. */
function tinyModels(): TinyModel[] {
  const fixtures = readdirSync(new URL('fixtures/', TESTS))
    .filter((name) => name.startsWith('tiny-') && existsSync(new URL(`goldens/${name}.json`, TESTS)))
    .map((name) => {
      const { config, format } = openCheckpoint(fileURLToPath(new URL(`fixtures/${name}`, TESTS)));
      const isTwin = existsSync(new URL(`fixtures/${name}-gguf`, TESTS));
      return { config, gguf: isTwin || format === 'gguf' };
    });
  const converted = new Set(
    (json('goldens/families-gguf.json') as { families: { name: string }[] }).families.map(({ name }) => name),
  );
  const made = json('goldens/families.json') as { families: { name: string; config: JsonObject }[] };
  const described = made.families.map(({ name, config }) => ({
    config: configOf(config),
    gguf: converted.has(name),
  }));
  return [...fixtures, ...described];
}

function configOf(fields: JsonObject): ModelConfig {
  const unwrapped = unwrapConfig('config.json', fields);
  return configOfHuggingFace(unwrapped.where, unwrapped.fields, null);
}

/** Without the names of the folder and of what is near, which depend on other things. */
function reasonOf(sentence: string): string {
  return sentence
    .replace(/^.*config\.json: /, '')
    .replace(/^architecture \S+ is not supported: /, '')
    .replace(/(; near to it (is|are) .*)? \(docs\/models\.md .*\)\.$/, '')
    .replace(/, found .*\.$/, '');
}

function refusedTable(
  opened: readonly OpenedModel[],
  cellsOf: (names: string, architecture: string, reason: string) => string[],
): string {
  const rows = new Map<string, string[]>();
  for (const { model, opened: sentence } of opened) {
    if (typeof sentence !== 'string') continue;
    const [architecture] = model.config.architectures as string[];
    const key = `\`${architecture}\` | ${reasonOf(sentence)}`;
    rows.set(key, [...(rows.get(key) ?? []), nameOf(model)]);
  }
  const cells = [...rows].map(([key, names]) => {
    const [architecture, reason] = key.split(' | ') as [string, string];
    return cellsOf(names.join(', '), architecture, reason);
  });
  const head = cellsOf('models', '`architectures` of config.json', 'reason');
  return markdownTable(head, cells, head.length);
}

/** Architectures of decoders that the table leaves out: none, or a test fails. */
export function familiesWithoutFacts(): string[] {
  return architectures.filter((name) => !encoderArchitectures.has(name) && FAMILY_FACTS[name] === undefined);
}
