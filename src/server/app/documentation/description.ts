import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { ServerRoute } from '../server-context.js';
import { packedDescription } from './packed-description.js';

/** The part of an OpenAPI document that depends on the routes that a server has. */
interface Document {
  info: { version: string };
  /** Operations by path and method. */
  paths: Record<string, Record<string, unknown>>;
  /** Shared parts by kind and name. */
  components: Record<string, Record<string, unknown>>;
}

/** Kinds of components that operations have by name, and not by `$ref`. */
const NAMED = ['securitySchemes'];
const REFERENCE = /^#\/components\/(\w+)\/(.+)$/;

/** The OpenAPI 3.1 document of these routes, as JSON. @param routes some of all routes */
export async function describeRoutes(routes: readonly ServerRoute[], version: string): Promise<string> {
  const bytes = await promisify(gunzip)(Buffer.from(await packedDescription(), 'base64'));
  const whole = JSON.parse(bytes.toString()) as Document;
  return JSON.stringify({ ...ofRoutes(whole, routes), info: { ...whole.info, version } });
}

/** The operations of these routes, and the components that they lead to. */
function ofRoutes(whole: Document, routes: readonly ServerRoute[]): Document {
  const wanted = new Set(routes.map(({ method, path }) => `${method} ${path}`));
  const operations = Object.entries(whole.paths)
    .map(([path, methods]) => [path, filtered(methods, (method) => wanted.has(`${method} ${path}`))] as const)
    .filter(([, methods]) => Object.keys(methods).length > 0);
  const paths = Object.fromEntries(operations);
  const reached = new Set<string>();
  reach(paths, whole.components, reached);
  const components = Object.entries(whole.components).map(([kind, named]) => [
    kind,
    NAMED.includes(kind) ? named : filtered(named, (name) => reached.has(`#/components/${kind}/${name}`)),
  ]);
  return { ...whole, paths, components: Object.fromEntries(components) };
}

/** Adds the references in a value, and in what they lead to. */
function reach(value: unknown, components: Document['components'], reached: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const inner of Object.values(value)) reach(inner, components, reached);
  const { $ref } = value as { $ref?: unknown };
  if (typeof $ref !== 'string' || reached.has($ref)) return;
  const [, kind, name] = REFERENCE.exec($ref) ?? [];
  if (kind === undefined || name === undefined) return;
  reached.add($ref);
  reach(components[kind]?.[name], components, reached);
}

function filtered<T>(fields: Record<string, T>, isWanted: (name: string) => boolean): Record<string, T> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => isWanted(name)));
}
