import { execFileSync, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { readDocument, repository } from './documents.js';

// biome-ignore lint/suspicious/noExplicitAny: documents of many kinds, walked by the names that Kubernetes defines.
export type Manifest = any;

const require = createRequire(import.meta.url);

/** Where Kubernetes' own schemas of each kind are, by apiVersion. */
const SCHEMAS: Readonly<Record<string, string>> = {
  v1: 'kubernetes-models/v1',
  'apps/v1': 'kubernetes-models/apps/v1',
  'autoscaling/v2': 'kubernetes-models/autoscaling/v2',
  'networking.k8s.io/v1': 'kubernetes-models/networking.k8s.io/v1',
  'policy/v1': 'kubernetes-models/policy/v1',
  'keda.sh/v1alpha1': '@kubernetes-models/keda/keda.sh/v1alpha1',
};
/** Fields of any kind, which its schema does not look at one by one. */
const TOP_FIELDS = new Set(['apiVersion', 'kind', 'metadata', 'spec', 'data', 'stringData', 'type']);

/** Older ones have a kustomize that knows no `patches` with a target. */
const OLDEST_KUBECTL = 21;

/** kubectl, which brings kustomize: pip's, of test/requirements.txt, or else the machine's own. null: there is none that is new enough. */
export const kubectl = findKubectl();

function findKubectl(): string | null {
  const folder = dirname(process.env.SKEIN_TEST_PYTHON || join(repository, '.venv/bin/python'));
  const candidates = [join(folder, 'kubectl'), 'kubectl'];
  return candidates.find((command) => minorVersionOf(command) >= OLDEST_KUBECTL) ?? null;
}

/** Of version 1.x, x; -1: there is no such program. */
function minorVersionOf(command: string): number {
  const { stdout } = spawnSync(command, ['version', '--client', '--output=json'], { encoding: 'utf8' });
  return Number(/"gitVersion": *"v1\.(\d+)/.exec(stdout ?? '')?.[1] ?? -1);
}

/** All documents of a YAML file of this repository. */
export function manifestsOf(path: string): Manifest[] {
  return parseManifests(readDocument(path), path);
}

function parseManifests(text: string, what: string): Manifest[] {
  return parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) throw new Error(`${what}: ${document.errors[0]!.message}`);
    return document.toJS();
  });
}

const texts = new Map<string, string>();

/** What `kubectl apply -k` would send for a folder of this repository. */
export function built(folder: string): Manifest[] {
  const text =
    texts.get(folder) ??
    execFileSync(kubectl!, ['kustomize', join(repository, folder)], { encoding: 'utf8' });
  texts.set(folder, text);
  return parseManifests(text, folder);
}

/** Why Kubernetes would not take a document: what its schema refuses, and fields that no schema has. Empty: it would. */
export function schemaProblems(document: Manifest): string[] {
  const { apiVersion, kind } = document;
  const schemas = SCHEMAS[apiVersion] === undefined ? {} : require(SCHEMAS[apiVersion]);
  const Model = schemas[kind];
  if (Model === undefined) return [`${apiVersion} ${kind} has no schema here`];
  const problems = Object.keys(document).filter((field) => !TOP_FIELDS.has(field));
  const read = new Map<object, Set<PropertyKey>>();
  try {
    // Its constructor would copy the document.
    Model.prototype.validate.call(watched(document, read));
  } catch (error) {
    problems.push((error as Error).message);
  }
  return [...problems, ...unread(document, read, '')];
}

/** An object that notes which fields are read of it, and of all below it. */
function watched<T>(value: T, read: Map<object, Set<PropertyKey>>): T {
  if (typeof value !== 'object' || value === null) return value;
  const fields = read.get(value) ?? new Set<PropertyKey>();
  read.set(value, fields);
  return new Proxy(value, {
    get(target, field) {
      fields.add(field);
      return watched(Reflect.get(target, field), read);
    },
  });
}

/** Fields that a validator has not looked at: it knows none of these names. */
function unread(value: unknown, read: ReadonlyMap<object, ReadonlySet<PropertyKey>>, path: string): string[] {
  const fields = typeof value === 'object' && value !== null ? read.get(value) : undefined;
  if (fields === undefined) return [];
  return Object.entries(value as object).flatMap(([name, below]) =>
    fields.has(name) ? unread(below, read, `${path}/${name}`) : [`${path}/${name} is no field`],
  );
}
