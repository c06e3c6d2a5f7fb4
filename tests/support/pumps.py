"""A small table and a small graph of pumps, of which questions ask what is computed."""

PUMPS_CSV = """\
id,name,maker,weight_kg,price_eur
P1,Pump P1,Norden,11,300
P2,Pump P2,Norden,42,700
P3,Pump P3,Berg,27,410
P4,Pump P4,Norden,9,250
P5,Pump P5,Berg,31,390
"""

PUMPS_TTL = """\
@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:P1 rdfs:label "Pump P1"@en ; ex:maker ex:Norden ; ex:weight 11 ; ex:country "Norway" .
ex:P2 rdfs:label "Pump P2"@en ; ex:maker ex:Norden ; ex:weight 42 ; ex:country "Sweden" .
ex:P3 rdfs:label "Pump P3"@en ; ex:maker ex:Norden ; ex:weight 13 ; ex:country "Norway" .
ex:P4 rdfs:label "Pump P4"@en ; ex:maker ex:Norden ; ex:weight 9 ; ex:country "Sweden" .
ex:P5 rdfs:label "Pump P5"@en ; ex:maker ex:Berg ; ex:weight 27 ; ex:country "Norway" .
ex:P6 rdfs:label "Pump P6"@en ; ex:maker ex:Berg ; ex:weight 31 ; ex:country "Sweden" .
ex:Norden rdfs:label "Norden"@en .
ex:Berg rdfs:label "Berg"@en .
"""
