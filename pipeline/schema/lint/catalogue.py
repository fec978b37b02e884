"""What the lint says: one paragraph per code. First line: code and severity; then what such a schema has; then, after
an arrow, the usual remedy. Read by `rules.py`.
"""

SHAPE = """
deep_nesting warning
  values nested too deep: models lose the thread and every level costs tokens
  → Flatten: lift inner fields to the outer object, or extract the inner part with a schema of its own.
many_optional warning
  an object with many optional properties: models skip them and grammar states multiply
  → Make them required and let them be null.
wide_object warning
  an object with very many properties: models mix up and forget fields
  → Split it into several schemas, or group fields that belong together.
conditional warning
  a condition that grammars drop or refuse, so that only the validator sees it
  → Write each case as a branch of an anyOf whose first property is a required const.
untold_union warning
  a union of objects that no required constant tells apart
  → Give every branch a first, required property with a const of its own.
late_discriminator warning
  a discriminator that is not the first property: the branch is chosen only after fields of it were written
  → Move the constant to the front of `properties` in every branch.
overlapping_one_of warning
  a oneOf whose branches accept the same values: it then refuses them, and grammars read it as anyOf
  → Use anyOf, or make the branches exclude each other.
mixed_types warning
  a value that may be of several types: it has no column type and is kept as JSON text
  → Settle on one type, or on one property per type.
missing_type warning
  a schema without `type`: keywords for one type let every other type pass
  → Add the `type` that is meant.
any_value warning
  a place where any JSON value is legal
  → Say what the value is: at least its `type`.
root_not_object warning
  a root that is not an object: a record is an object with a column per property
  → Wrap it: an object with one property that holds it.
open_object info
  an object that stays open: keys that nobody declared have no column
  → Set additionalProperties to false.
free_form_object warning
  an object that declares no properties: the model makes up the keys
  → Declare the properties, or use an array of objects with key and value.
map_object warning
  an object whose keys are data: back ends treat such keys differently or refuse them
  → Use an array of objects, for example with the properties `key` and `value`.
tuple_array info
  an array whose positions have meanings without names
  → Use an object with named properties.
recursion warning
  recursion, which JSON Schema cannot bound: nesting may go on until the tokens end
  → Unroll it to the depth that is needed, or store a flat list in which items name their parent.
endless warning
  a recursion that no finite document satisfies
  → Make one step of the loop nullable, optional, or an array that may be empty.
unused_definition info
  definitions that nothing refers to
  → Remove them, or refer to them.
undeclared_required warning
  required names that no property declares
  → Declare the property, or correct the name in `required`.
closed_against_parts warning
  additionalProperties: false beside parts (allOf, $ref, anyOf) whose properties it does not see and so refuses
  → Copy those properties into this object's `properties`, or use unevaluatedProperties.
impossible warning
  a schema that no value satisfies
  → Correct the contradiction or remove the property.
"""

LEAVES = """
free_text_share warning
  mostly free strings: hardly anything is held by the grammar or checked
  → Give enum, pattern, format or maxLength to the strings that have a form.
no_unknown warning
  required fields without a way to say "unknown": a model that must answer invents
  → Add "null" to the type, or a member "unknown" to the enum.
optional_and_null info
  fields that may be missing and may be null: two spellings of the same answer
  → Make them required and keep null.
number_as_string warning
  a number typed as string: it sorts, sums and validates as text
  → Use type number or integer.
date_as_string warning
  a date as a string without `format`: any text, or an impossible day, passes
  → Add format date, date-time or time.
list_as_string warning
  a list packed into one string
  → Use an array of strings.
unbounded_array warning
  an array without maxItems: a model that loops fills the whole token budget
  → Set maxItems to the most that a document can hold.
unbounded_string info
  strings without a longest length: a model that loops fills the whole token budget
  → Set maxLength.
unbounded_number info
  numbers without minimum and maximum: digits may go on for ever and leave 64 bit
  → Set minimum and maximum.
huge_bound warning
  a bound so large that back ends fail or compile for long
  → Choose a bound that documents really reach.
huge_enum warning
  an enum so large that it compiles slowly and makes other schemas of its engine wait
  → Narrow the candidates first (search, then an enum of the best few), or extract the text and match it afterwards.
crossed_bounds warning
  bounds that leave no room
  → Correct the lower or the upper bound.
unsafe_integer warning
  integers beyond 2^53, which many JSON readers round
  → Use a string with a pattern, or smaller bounds.
enum_type_mismatch warning
  an enum or const member of another type than the rest or than `type`
  → Write the member in the type that is meant, or add its type.
enum_repeats warning
  an enum that holds the same value twice
  → Remove the repetition.
enum_refused warning
  an enum or const member that the rest of its schema refuses
  → Remove the member, or loosen the keyword that refuses it.
default_refused warning
  a default that its own schema refuses
  → Correct the default.
example_refused warning
  an example that its own schema refuses: the prompt shows the model a wrong answer
  → Correct the example.
default_ignored info
  a default: nothing fills it in, and the model may copy it without reading
  → Remove it; let the field be null and fill it in after extraction.
volatile_constant warning
  a constant that looks as if it changed per request: every change compiles a new grammar and starts a new prompt
  prefix
  → Keep it out of the schema; join it to the record afterwards by document id.
prose_constraint warning
  a rule that stands only in a description, where nothing enforces it
  → Write it as a keyword: enum, maxLength or maxItems.
described_optional warning
  a field that its description calls optional and that is required and never null
  → Add "null" to the type.
cryptic_enum info
  an enum of short codes without a description: the model has to guess what they mean
  → Use words as members, or explain each code in `description`.
"""

NAMES = """
label_before_rationale warning
  a verdict before its reasons: the model decides first and justifies afterwards
  → Put the reasons before the verdict in `properties`.
lookalike_names warning
  property names that are easily confused
  → Rename one of them, or remove it.
lookalike_values warning
  enum members that are easily confused
  → Keep one spelling.
disguised_text warning
  names or values with characters that look like others or cannot be seen
  → Type them again in plain characters of one script.
unsafe_name warning
  a property name with control characters, quotes, backslashes or blanks at its ends, or an empty one
  → Use letters, digits and underscores.
long_name warning
  a property name that is longer than 64 characters: it costs tokens in every record
  → Shorten it and move the words to `description`.
unclear_name info
  short names without a description: the model has to guess what is meant
  → Add a description, or a longer name.
negated_boolean info
  a boolean with a negative name: "false" is then a double negation
  → Name it for the positive case.
numbered_names warning
  numbered properties in place of an array: a model fills them up or stops early
  → Use an array with maxItems.
stale_instructions info
  instructions that name a field or value that the schema does not have
  → Correct the name in instructions.md.
"""

KEYWORDS = """
misspelt_keyword warning
  a misspelt keyword, which every validator ignores
  → Correct the spelling.
other_draft_keyword warning
  a keyword of another draft or of OpenAPI, which 2020-12 ignores
  → Write it the 2020-12 way.
unknown_keyword info
  a keyword that nobody knows or enforces
  → Remove it, or start its name with `x-`.
misplaced_property warning
  what looks like a property outside `properties`, where it has no effect
  → Move it into `properties`.
inapplicable_keyword warning
  a keyword that does not apply to the declared type and so has no effect
  → Remove it or correct `type`.
orphan_keyword warning
  a keyword that has no effect without another one
  → Add its partner or remove it.
annotation_only info
  a content keyword: it describes and is never checked
  → Use pattern or format where it should be checked.
unchecked_format warning
  a format that the validator does not check
  → Use a format that is checked, or a pattern.
loose_pattern info
  a pattern without anchors: it is searched for, and some grammars read it as the whole value
  → Write ^ in front and $ at the end, or .* where more may stand.
grammarless_pattern warning
  a pattern with look-around, back-references or word boundaries, which grammars drop or refuse
  → Say it with alternatives and character classes.
slow_pattern warning
  a pattern that can take exponential time on a long value
  → Let nested repetitions begin or end with a character that they cannot contain.
foreign_pattern warning
  a pattern in Python's dialect that ECMA 262, the dialect of JSON Schema, reads otherwise
  → Use ^ and $, plain groups, and spell both cases.
"""
