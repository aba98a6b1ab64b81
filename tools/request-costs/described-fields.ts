/** The part of an OpenAPI document that is read here. */
interface Described {
  paths: Record<string, Record<string, { requestBody?: { content: Record<string, { schema: SchemaOf }> } }>>;
  components: { schemas: Record<string, SchemaOf> };
}
interface SchemaOf {
  $ref?: string;
  anyOf?: SchemaOf[];
  oneOf?: SchemaOf[];
  properties?: Record<string, unknown>;
}

/** The types of items that a request may have, as the server describes itself. */
export async function describedItems(url: string): Promise<string[]> {
  return typesIn((await descriptionOf(url)).components.schemas.ResponseInputItem!);
}

function typesIn({ properties, anyOf = [], oneOf = [] }: SchemaOf): string[] {
  const { type } = (properties ?? {}) as { type?: { const?: string; enum?: string[] } };
  const own = type?.const ?? type?.enum?.[0];
  return [...new Set([...(own === undefined ? [] : [own]), ...[...anyOf, ...oneOf].flatMap(typesIn)])];
}

async function descriptionOf(url: string): Promise<Described> {
  return (await (await fetch(`${url}/openapi.json`)).json()) as Described;
}

/** The fields of every route that takes a body, as the server describes itself but of tensors: dear-tensors.ts has those. */
export async function describedFields(url: string): Promise<Map<string, readonly string[]>> {
  const { paths, components } = await descriptionOf(url);
  const fields = new Map<string, readonly string[]>();
  for (const [path, { post }] of Object.entries(paths)) {
    const schema = post?.requestBody?.content['application/json']?.schema;
    if (schema === undefined || (path.startsWith('/v2/') && !/^\/v2\/(embed|rerank)$/.test(path))) continue;
    const found = schema.$ref === undefined ? schema : components.schemas[schema.$ref.split('/').at(-1)!]!;
    fields.set(path, Object.keys(found.properties ?? {}));
  }
  return fields;
}
