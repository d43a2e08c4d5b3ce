// Writes the types of docs/openapi.json to src/schema.ts; with --check it only says whether they differ.
import { readFileSync, writeFileSync } from 'node:fs';

const source = new URL('../../../docs/openapi.json', import.meta.url);
const target = new URL('./src/schema.ts', import.meta.url);
const methods = ['get', 'head', 'put', 'post', 'patch', 'delete'];

/** @param {any} schema @returns {string} */
function typeOf(schema) {
  if (schema?.$ref) return schema.$ref.split('/').at(-1);
  const union = schema?.anyOf ?? schema?.oneOf;
  if (union) return union.map(typeOf).join(' | ');
  if (schema?.enum)
    return schema.enum.map((/** @type {string} */ value) => JSON.stringify(value)).join(' | ');
  if (Array.isArray(schema?.type)) {
    return schema.type.map((/** @type {string} */ type) => typeOf({ ...schema, type })).join(' | ');
  }
  switch (schema?.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `(${typeOf(schema.items)})[]`;
    case 'object':
      return schema.properties ? `{\n${fieldsOf(schema)}}` : 'Record<string, unknown>';
    default:
      throw new Error(`the generator does not know ${JSON.stringify(schema)}`);
  }
}

/** @param {any} schema */
function fieldsOf(schema) {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties)
    .map(
      ([name, field]) =>
        `  ${JSON.stringify(name)}${required.has(name) ? '' : '?'}: ${typeOf(field)};\n`,
    )
    .join('');
}

/** What a request brings: JSON, bytes, or either. @param {any} content @param {string} none */
function bodyOf(content, none) {
  if (!content) return none;
  const json = content['application/json'];
  if (!json) return 'BodyInit';
  const others = Object.keys(content).length > 1 ? ' | BodyInit' : '';
  return `${typeOf(json.schema)}${others}`;
}

/** @param {any} operation */
function answerOf(operation) {
  const found =
    operation.responses['200'] ?? operation.responses['201'] ?? operation.responses['204'];
  const json = found?.content?.['application/json'];
  if (json) return typeOf(json.schema);
  return found?.content ? 'Response' : 'undefined';
}

/** @param {any} document */
function render(document) {
  let text = '// Made from docs/openapi.json by `npm run generate`; changes here are lost.\n\n';
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    text += `export type ${name} = ${typeOf(schema)};\n\n`;
  }
  text +=
    '/** What may be asked: method and path, what goes with it, and what comes back. */\nexport interface Operations {\n';
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of methods.filter((name) => name in item)) {
      const operation = /** @type {any} */ (item)[method];
      const body = bodyOf(operation.requestBody?.content, 'undefined');
      text += `  /** ${operation.summary}. */\n  "${method.toUpperCase()} ${path}": { body: ${body}; answer: ${answerOf(operation)} };\n`;
    }
  }
  return `${text}}\n`;
}

const text = render(JSON.parse(readFileSync(source, 'utf8')));
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== text) {
    console.error(
      'packages/api/src/schema.ts differs from docs/openapi.json: run `npm run generate`',
    );
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
