"""The HTTP interface of Azure Personalizer, so that its applications work after changing the endpoint and the key.

`schemas` has its bodies; `translate`, `slots` and `configuration` map them to those of the service and back;
`endpoints` and `operations` serve them, and `dialect` has its key header and its errors.
"""
