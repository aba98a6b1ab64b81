/** The part of an OpenAPI document that is read here. */
interface Described {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: SchemaOf }> } }>>;
  components: { schemas: Record<string, SchemaOf> };
}
interface SchemaOf {
  $ref?: string;
  properties?: Record<string, unknown>;
}

/** The fields of every route that takes a body, as the server describes itself but of tensors: dear-tensors.ts has those. */
export async function describedFields(url: string): Promise<Map<string, readonly string[]>> {
  const { paths, components } = (await (await fetch(`${url}/openapi.json`)).json()) as Described;
  const fields = new Map<string, readonly string[]>();
  for (const [path, { post }] of Object.entries(paths)) {
    const schema = post?.requestBody?.content['application/json']?.schema;
    if (schema === undefined || (path.startsWith('/v2/') && path !== '/v2/rerank')) continue;
    const found = schema.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1)!]!;
    fields.set(path, Object.keys(found.properties ?? {}));
  }
  return fields;
}
