// Published rules of large model APIs for tool schemas, with their sources.

type JsonSchema = Readonly<Record<string, unknown>>;

/** Each row: the source, and a check that returns true for a schema that the API would reject or misinterpret. */
export const RULES: readonly (readonly [source: string, breaks: (schema: JsonSchema) => boolean])[] = [
  [
    "OpenAI, function calling: schema must have type 'object' and no 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level (mobile-next/mobile-mcp#344)",
    (schema) => schema.type !== 'object' || ['oneOf', 'anyOf', 'allOf', 'enum', 'not'].some((word) => word in schema),
  ],
  [
    'Anthropic, tool use: input_schema does not support oneOf, allOf, or anyOf at the top level (langchain-ai/langchainjs#9804)',
    (schema) => schema.type !== 'object' || ['oneOf', 'anyOf', 'allOf'].some((word) => word in schema),
  ],
  [
    'Gemini, function declarations: an OpenAPI object; conditions are dropped, so a required field must be in `required`',
    (schema) => ['if', 'then', 'else', 'dependentSchemas', '$ref'].some((word) => word in schema),
  ],
  [
    'OpenAI, structured outputs: at most 5,000 properties, and no property without a type, a reference, or a union',
    (schema) =>
      Object.values(schema.properties ?? {}).some(
        (property: JsonSchema) => !['type', '$ref', 'anyOf', 'oneOf', 'enum', 'const'].some((word) => word in property),
      ),
  ],
];
