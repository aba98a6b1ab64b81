// @ts-check
// Search by meaning in PostgreSQL with pgvector.      npm install skein @electric-sql/pglite @electric-sql/pglite-pgvector
//
//     node pgvector.mjs "Who looks after the animals?"
//
// PGlite is PostgreSQL compiled to WebAssembly; the same statements work on a server, by pg or postgres.js.
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { Encoder } from 'skein';

const texts = [
  'The zoo opens at nine and closes at dusk.',
  'Keepers feed the lions and clean their cages each morning.',
  'A ticket costs twelve euros, and children pay half.',
  'The vet visits on Tuesdays to examine sick animals.',
  'Dogs must stay outside, but there is shade and water at the gate.',
  'The tram stops in front of the main entrance.',
];

const encoder = await Encoder.load({ model: process.env.MODEL ?? 'sentence-transformers/all-MiniLM-L6-v2' });
const db = await PGlite.create({ extensions: { vector } });
await db.exec(`
  CREATE EXTENSION vector;
  CREATE TABLE passages (id serial PRIMARY KEY, body text NOT NULL, embedding vector(${encoder.info.dimensions}) NOT NULL);
  CREATE INDEX ON passages USING hnsw (embedding vector_cosine_ops);
`);

/** A vector as pgvector reads it. @param {Float32Array} row */
const literal = (row) => `[${row.join(',')}]`;

// One call for all texts: they share batches.
const rows = await encoder.embed(texts, { onProgress: (done, all) => console.error(`${done} of ${all}`) });
await db.query(
  `INSERT INTO passages (body, embedding)
   SELECT body, embedding::vector FROM unnest($1::text[], $2::text[]) AS given (body, embedding)`,
  [texts, rows.map(literal)],
);

const question = process.argv[2] ?? 'Who looks after the animals?';
const [asked] = /** @type {[Float32Array]} */ (await encoder.embed(question));
const { rows: found } = await db.query(
  'SELECT body, 1 - (embedding <=> $1) AS cosine FROM passages ORDER BY embedding <=> $1 LIMIT 3',
  [literal(asked)],
);
for (const { body, cosine } of /** @type {{ body: string, cosine: number }[]} */ (found)) {
  console.log(`${cosine.toFixed(3)}  ${body}`);
}

await db.close();
await encoder.close();
