import { expect } from 'vitest';
import type * as z from 'zod';
import { ROUTES } from '../../../../src/server/app/routes/index.js';
import type { Route } from '../../../../src/server/web/route.js';

/** A route with a JSON body, and a body that it takes. */
export interface FuzzedRoute {
  /** Such as POST /v1/completions. */
  name: string;
  path: string;
  fields: readonly string[];
  /** Fields whose schema an earlier route has too: the same object, which checks in the same way. */
  shared: ReadonlySet<string>;
  /** Without the name of a model. */
  valid: Record<string, unknown>;
}

/** Every route with a body that the server has, read from what it says of itself: new ones are here by themselves. */
export async function fuzzedRoutes(): Promise<FuzzedRoute[]> {
  const routes = await Promise.all(ROUTES.filter(({ method }) => method === 'post').map(fuzzed));
  const seen = new Set<unknown>();
  return routes
    .filter((route) => route !== null)
    .map(({ shape, ...route }) => {
      const shared = new Set(route.fields.filter((field) => seen.has(shape[field])));
      for (const field of route.fields) seen.add(shape[field]);
      return { ...route, shared };
    });
}

type Shape = Readonly<Record<string, unknown>>;

async function fuzzed(route: Route): Promise<(Omit<FuzzedRoute, 'shared'> & { shape: Shape }) | null> {
  const { request } = await route.describe();
  const body = (
    request?.body as { content: Record<string, { schema: z.ZodObject; examples?: object }> } | undefined
  )?.content['application/json'];
  if (body?.schema?.shape === undefined) return null;
  const [example] = Object.values(body.examples ?? {}) as { value: Record<string, unknown> }[];
  const { model: _, ...valid } = example?.value ?? {};
  const path = route.path.replaceAll(/\{.+?\}/g, 'x');
  return {
    name: `${route.method.toUpperCase()} ${route.path}`,
    path,
    fields: Object.keys(body.schema.shape),
    shape: body.schema.shape,
    valid,
  };
}

/** The path of every route, whatever its method, with something in the place of its parameters. */
export const PATHS: readonly string[] = [
  ...new Set(ROUTES.map(({ path }) => path.replaceAll(/\{.+?\}/g, 'x'))),
];

export interface Refusal {
  status: number;
  message: string;
  param: string | null;
  code: string | null;
}

/**
 * Reads an answer to the end. Null where the request was taken; else the refusal, which has to be the client's fault and in
 * OpenAI's form, or in Anthropic's.
 */
export async function refusalOf(response: Response, what: string): Promise<Refusal | null> {
  const text = await response.text();
  const shown = `${what} was answered with ${response.status}: ${text.slice(0, 300)}`;
  expect(response.status, shown).toBeLessThan(500);
  if (response.status < 400) return null;
  const body = JSON.parse(text) as { type?: string; error: Record<string, unknown> };
  const error = body.type === 'error' ? ofAnthropic(body.error) : body.error;
  expect(Object.keys(error).sort(), shown).toEqual(['code', 'message', 'param', 'type']);
  expect(error.message, shown).toMatch(/\S{3}/);
  // Nothing that only a bug says.
  expect(error.message, shown).not.toMatch(/undefined|\[object|is not a function|Cannot read|call stack/);
  expect((error.message as string).length, shown).toBeLessThan(2000);
  expect(error.type, shown).toEqual(expect.any(String));
  expect(error.param === null || typeof error.param === 'string', shown).toBe(true);
  const { message, param, code } = error as unknown as Refusal;
  return { status: response.status, message, param, code };
}

/** An error of Anthropic's form in OpenAI's. */
function ofAnthropic({ details, ...error }: Record<string, unknown>): Record<string, unknown> {
  const { error_code: code = null, param = null } = (details ?? {}) as Record<string, unknown>;
  return { ...error, code, param };
}
