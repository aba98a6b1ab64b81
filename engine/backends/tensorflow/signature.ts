import type { ModelConfig } from '../../../models/repository/model-config.js';
import { BackendError } from '../backend.js';
import type { SavedGraph, SavedSignature } from './saved-model-file.js';

/** Names of a configuration's parameters. Source: Triton's TensorFlow backend. */
const GRAPH_TAG = 'TF_GRAPH_TAG';
const SIGNATURE_DEF = 'TF_SIGNATURE_DEF';

const DEFAULT_TAG = 'serve';
const DEFAULT_SIGNATURE = 'serving_default';
/** Functions that TensorFlow itself calls. */
const INTERNAL: ReadonlySet<string> = new Set(['__saved_model_init_op', '__saved_model_train_op']);

/** A function of a SavedModel with the graph that it is in. */
export interface ChosenSignature {
  tags: readonly string[];
  signature: SavedSignature;
}

/**
 * The signature that a configuration means: that of `TF_SIGNATURE_DEF`, else `serving_default`, else the only one; in the graph whose tags are
 * those of `TF_GRAPH_TAG`, separated by commas, else `serve`. @throws BackendError naming what there is
 */
export function chooseSignature(
  folder: string,
  graphs: readonly SavedGraph[],
  parameters: ModelConfig['parameters'] = {},
): ChosenSignature {
  const graph = chooseGraph(folder, graphs, parameters[GRAPH_TAG]?.string_value);
  const names = [...graph.signatures.keys()].filter((name) => !INTERNAL.has(name)).sort();
  const asked = parameters[SIGNATURE_DEF]?.string_value ?? '';
  const only = names.length === 1 ? names[0]! : DEFAULT_SIGNATURE;
  const name = asked !== '' ? asked : names.includes(DEFAULT_SIGNATURE) ? DEFAULT_SIGNATURE : only;
  const signature = names.includes(name) ? graph.signatures.get(name) : undefined;
  if (signature !== undefined) return { tags: graph.tags, signature };
  const found =
    names.length === 0 ? 'it has none' : `it has ${listed(names)}, which ${SIGNATURE_DEF} can name`;
  throw new BackendError(`${folder} has no signature '${name}'; ${found}.`);
}

function chooseGraph(folder: string, graphs: readonly SavedGraph[], asked: string | undefined): SavedGraph {
  const wanted = (asked || DEFAULT_TAG).split(',');
  const exact = graphs.find(
    ({ tags }) => tags.length === wanted.length && wanted.every((tag) => tags.includes(tag)),
  );
  if (exact !== undefined) return exact;
  const found = graphs.map(({ tags }) => `'${tags.join(',')}'`).join(' and ') || 'none';
  throw new BackendError(
    `${folder} has no graph with the tags '${wanted.join(',')}'; it has ${found}, which ${GRAPH_TAG} can name.`,
  );
}

const listed = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');
